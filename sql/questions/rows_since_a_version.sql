-- How many rows has each game got since a version of the table?
-- Grain: one row per game_name.
-- Asked by: analyst.
-- Version 0 is the table's first; table_history.sql lists the others. A report that names its version can be repeated.
WITH before AS (
    SELECT game_name, count(*) AS events
    FROM silver.events FOR VERSION AS OF 0
    GROUP BY game_name
),
now AS (
    SELECT game_name, count(*) AS events
    FROM silver.events
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
