-- How many events come more than an hour after they happened?
-- Grain: one row per event_date and game_name with an event that the gateway has timestamped, of the last 7 days.
-- Asked by: analyst.
-- For: operator.
-- Days are in UTC.
SELECT
    event_date,
    game_name,
    count(*) AS stamped_events,
    count(*) FILTER (WHERE ingest_time > event_time + INTERVAL '1' HOUR) AS late_events,
    max(date_diff('minute', event_time, ingest_time)) AS minutes_late_at_most
FROM silver.events
WHERE event_date >= current_date - INTERVAL '7' DAY
  AND ingest_time IS NOT NULL
GROUP BY event_date, game_name
ORDER BY event_date, game_name
