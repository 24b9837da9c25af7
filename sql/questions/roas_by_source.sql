-- How much have players paid per dollar of their cost (ROAS) 0, 1, 7 and 30 days after their first day, by source?
-- Grain: one row per game_name, source and day, of the first days of the last 45 days that have a cost.
-- Asked by: analyst.
-- For: product manager.
-- Only days that were over in the game's time zone when today began in UTC. Only older cohorts have later days, so a later day may have a smaller sum.
SELECT
    game_name,
    source,
    day,
    sum(installs) AS installs,
    round(sum(cost), 2) AS cost,
    round(sum(revenue), 2) AS revenue,
    round(sum(revenue) / sum(cost), 4) AS roas
FROM gold.roas
WHERE event_date >= current_date - INTERVAL '45' DAY
  AND cohort_date >= current_date - INTERVAL '45' DAY
  AND provisional_until <= CAST(current_date AS timestamp) + INTERVAL '180' MINUTE
  AND day IN (0, 1, 7, 30)
GROUP BY game_name, source, day
ORDER BY game_name, source, day
