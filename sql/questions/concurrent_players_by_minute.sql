-- How many players were in each game at once yesterday, minute by minute?
-- Grain: one row per game_name and minute in which the number changed; it held until next_minute.
-- Asked by: analyst.
-- For: live-ops manager.
SELECT
    game_name,
    minute,
    next_minute,
    players
FROM gold.concurrent_players
WHERE event_date = current_date - INTERVAL '1' DAY
ORDER BY game_name, minute
