-- How many sessions are played, and how long is one?
-- Grain: one row per day on which sessions began and game_name, of the last 14 days.
-- Asked by: analyst.
-- A session's length is the time between its first and its last event: one of a single event has the length 0. One that
-- crosses midnight belongs to the day of its first event.
WITH session AS (
    SELECT
        game_name,
        session_id,
        min(event_time) AS began,
        max(event_time) AS ended,
        count(*) AS events
    FROM silver.events
    WHERE event_date >= current_date - INTERVAL '14' DAY
      AND session_id IS NOT NULL
    GROUP BY game_name, session_id
)
SELECT
    CAST(began AS date) AS day,
    game_name,
    count(*) AS sessions,
    round(avg(date_diff('second', began, ended)) / 60e0, 2) AS minutes_on_average,
    round(avg(events), 2) AS events_on_average
FROM session
GROUP BY CAST(began AS date), game_name
ORDER BY day, game_name
