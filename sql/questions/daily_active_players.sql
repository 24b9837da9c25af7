-- How many different players did each game have, day by day?
-- Grain: one row per event_date and game_name with players, of the last 30 days.
-- Asked by: analyst.
-- For: product manager.
-- Days are those of the game's time zone, by the game servers' clocks; the platform's own test events are not counted.
SELECT
    event_date,
    game_name,
    count(*) AS players,
    sum(events) AS events
FROM gold.player_days
WHERE event_date >= current_date - INTERVAL '30' DAY
GROUP BY event_date, game_name
ORDER BY event_date, game_name
