-- How many different players did each game have, day by day?
-- Grain: one row per event_date and game_name, of the last 30 days.
-- Asked by: analyst.
-- Days are those of the game servers' clocks in UTC; the platform's own test events count as no player.
SELECT
    event_date,
    game_name,
    count(DISTINCT gamer_id) AS players,
    count(*) AS events
FROM silver.events
WHERE event_date >= current_date - INTERVAL '30' DAY
  AND event_name <> 'smoke_test'
GROUP BY event_date, game_name
ORDER BY event_date, game_name
