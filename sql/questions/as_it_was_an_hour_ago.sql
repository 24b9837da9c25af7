-- What did the table look like an hour ago?
-- Grain: one row per game_name that the table had then.
-- Asked by: analyst.
-- For: analyst.
-- Runs on: Trino.
-- Reads the last version that was committed by then; for a table that is younger Trino reports an error.
SELECT
    game_name,
    count(*) AS events,
    max(event_time) AS newest_event
FROM silver.events FOR TIMESTAMP AS OF (current_timestamp - INTERVAL '1' HOUR)
GROUP BY game_name
ORDER BY game_name
