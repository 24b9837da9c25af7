-- How many sessions are played, and how long is one?
-- Grain: one row per event_date and game_name, of the last 14 days.
-- Asked by: analyst.
-- For: analyst.
-- A session of one event has length 0; one that crosses midnight counts on both days.
SELECT
    event_date,
    game_name,
    count(*) AS sessions,
    round(avg(minutes), 2) AS minutes_on_average,
    round(avg(events), 2) AS events_on_average
FROM gold.sessions
WHERE event_date >= current_date - INTERVAL '14' DAY
GROUP BY event_date, game_name
ORDER BY event_date, game_name
