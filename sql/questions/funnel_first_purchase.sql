-- How many players who play also complete a level, and then buy something, by version?
-- Grain: one row per game_name, app_version and step, of the entries of the last 14 days.
-- Asked by: analyst.
-- For: product manager.
-- A player enters once per day and version, and has 7 days. `drop_off` is of those who reached the step before.
SELECT
    game_name,
    app_version,
    step,
    step_name,
    sum(reached) AS reached,
    round(1e0 * sum(reached) / sum(entered), 4) AS share_of_entered,
    round(1e0 - 1e0 * sum(reached) / nullif(sum(reached_before), 0), 4) AS drop_off
FROM gold.funnel_first_purchase
WHERE event_date >= current_date - INTERVAL '14' DAY
  AND app_version IS NOT NULL
GROUP BY game_name, app_version, version_order, step, step_name
ORDER BY game_name, version_order, step
