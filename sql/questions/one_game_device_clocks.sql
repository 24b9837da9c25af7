-- How wrong are the clocks of one game's devices?
-- Grain: one row per platform, over the last seven days.
-- Asked by: analyst.
-- For: game programmer.
-- A game's own table has columns that silver.events, the table of all games, does not have: here the device's time.
-- For another game, name its table; `SHOW TABLES FROM silver` lists them.
SELECT
    platform,
    count(DISTINCT device_id) AS devices,
    count(DISTINCT device_id) FILTER (
        WHERE abs(date_diff('second', client_event_time, event_time)) > 60
    ) AS devices_more_than_a_minute_off,
    max(abs(date_diff('second', client_event_time, event_time))) AS seconds_off_at_most
FROM silver.kart_rumble_events
WHERE event_date >= current_date - INTERVAL '7' DAY
  AND client_event_time IS NOT NULL
GROUP BY platform
ORDER BY platform
