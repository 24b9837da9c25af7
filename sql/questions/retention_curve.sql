-- Which share of new players plays on each day after the first one?
-- Grain: one row per game_name and day, of the first days of the last 90 days; day 0 is the first day.
-- Asked by: analyst.
-- For: product manager.
-- Days that were over, in the game's time zone, when today began in UTC. Only older cohorts have later days: `players` has the number of players that a share is of.
SELECT
    game_name,
    day,
    sum(new_players) AS players,
    sum(returned_players) AS returned_players,
    round(1e0 * sum(returned_players) / sum(new_players), 4) AS retention
FROM gold.kpi_cohorts
WHERE event_date >= current_date - INTERVAL '90' DAY
  AND provisional_until <= CAST(current_date AS timestamp) + INTERVAL '180' MINUTE
  AND cohort_date >= current_date - INTERVAL '90' DAY
GROUP BY game_name, day
ORDER BY game_name, day
