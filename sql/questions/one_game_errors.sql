-- Which versions of one game report errors, and how often?
-- Grain: one row per app_version, over the last 14 days.
-- Asked by: analyst.
-- For: game programmer.
SELECT
    app_version,
    count(*) AS events,
    count(*) FILTER (WHERE event_name = 'error') AS errors,
    count(*) FILTER (WHERE event_name = 'error' AND error.fatal) AS fatal_errors,
    round(1e3 * count(*) FILTER (WHERE event_name = 'error') / count(*), 2) AS errors_per_1000_events
FROM silver.kart_rumble_events
WHERE event_date >= current_date - INTERVAL '14' DAY
  AND app_version IS NOT NULL
GROUP BY app_version
ORDER BY regexp_replace(regexp_replace(app_version, '([0-9]+)', '0000000000$1'), '0*([0-9]{10})', '$1') || '.'
