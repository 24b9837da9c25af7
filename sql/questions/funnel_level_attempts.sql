-- At which step do sessions stop, on the way to a second completed level?
-- Grain: one row per event_date, game_name and step, of the last 7 days that are over.
-- Asked by: analyst.
-- For: game programmer.
-- A session has 30 minutes from its first event.
SELECT
    event_date,
    game_name,
    step,
    step_name,
    sum(reached) AS reached,
    sum(reached_before) - sum(reached) AS stopped
FROM gold.funnel_level_attempts
WHERE event_date >= current_date - INTERVAL '7' DAY
  AND event_date < current_date
GROUP BY event_date, game_name, step, step_name
ORDER BY event_date, game_name, step
