-- How fresh is each game, and how long did its events take to get here?
-- Grain: one row per game_name with events of the last two days.
-- Asked by: analyst.
-- For: operator.
-- Runs on: Trino.
-- "$file_modified_time" is when the row's file was written; the commit follows within a second, and Trino reads it at once.
-- A file that compaction rewrote has the later time: the result can be too high, never too low. Events whose clock runs
-- ahead say nothing about freshness and are excluded.
SELECT
    game_name,
    max(event_time) AS newest_event,
    date_diff('second', max(event_time), current_timestamp) AS newest_event_seconds_ago,
    approx_percentile(date_diff('millisecond', event_time, "$file_modified_time"), 0.5) / 1e3 AS seconds_median,
    approx_percentile(date_diff('millisecond', event_time, "$file_modified_time"), 0.95) / 1e3 AS seconds_p95
FROM silver.events
WHERE event_date >= current_date - INTERVAL '1' DAY
  AND event_time <= "$file_modified_time"
GROUP BY game_name
ORDER BY newest_event
