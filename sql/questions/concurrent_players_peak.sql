-- How many players are in each game at once, at most?
-- Grain: one row per event_date and game_name, of the last 14 days.
-- Asked by: analyst.
-- For: live-ops manager.
-- A player counts from the minute of the first event of a session to that of its last; `peak_minute` is the first one.
SELECT
    event_date,
    game_name,
    max(players) AS peak_players,
    min_by(minute, -86400 * players + date_diff('second', date_trunc('day', minute), minute)) AS peak_minute,
    event_date >= current_date AS is_provisional
FROM gold.concurrent_players
WHERE event_date >= current_date - INTERVAL '14' DAY
GROUP BY event_date, game_name
ORDER BY event_date, game_name
