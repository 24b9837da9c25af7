-- How many events came from each game, hour by hour?
-- Grain: one row per hour and game_name in which something happened, of today and the three days before.
-- Asked by: analyst.
-- For: live-ops manager.
-- The condition on event_date decides which files are read; one on event_time alone would read them all. Hours to come, of
-- devices whose clock is ahead, are left out.
SELECT
    date_trunc('hour', event_time) AS hour,
    game_name,
    count(*) AS events
FROM silver.events
WHERE event_date >= current_date - INTERVAL '3' DAY
  AND event_time <= current_timestamp
GROUP BY date_trunc('hour', event_time), game_name
ORDER BY hour DESC, game_name
