-- How many rows did each game get since a version of the table?
-- Grain: one row per game_name.
-- Asked by: analyst.
-- For: operator.
-- Runs on: Trino.
-- Version 0 is the table's first; table_history.sql lists the others. A report that names its version can be repeated.
-- The newest version is selected by time: Trino 476 reads a table without a version at the version that the same query
-- names for it in another place.
WITH before AS (
    SELECT game_name, count(*) AS events
    FROM silver.events FOR VERSION AS OF 0
    GROUP BY game_name
),
now AS (
    SELECT game_name, count(*) AS events
    FROM silver.events FOR TIMESTAMP AS OF (current_timestamp - INTERVAL '1' SECOND)
    GROUP BY game_name
)
SELECT
    game_name,
    coalesce(before.events, 0) AS events_then,
    now.events AS events_now,
    now.events - coalesce(before.events, 0) AS events_since
FROM now
LEFT JOIN before USING (game_name)
ORDER BY game_name
