-- Which share of new players plays 1, 7 and 30 days later, by country?
-- Grain: one row per game_name, country and day, of the first days of the last 45 days.
-- Asked by: analyst.
-- For: product manager.
-- Only days that were over in the game's time zone when today began in UTC. Only older cohorts have later days: `players` is the number of players behind a share.
SELECT
    game_name,
    value AS country,
    day,
    sum(new_players) AS players,
    round(1e0 * sum(returned_players) / sum(new_players), 4) AS retention
FROM gold.kpi_cohorts_by
WHERE dimension = 'country'
  AND event_date >= current_date - INTERVAL '45' DAY
  AND cohort_date >= current_date - INTERVAL '45' DAY
  AND provisional_until <= CAST(current_date AS timestamp) + INTERVAL '180' MINUTE
  AND day IN (1, 7, 30)
GROUP BY game_name, value, day
ORDER BY game_name, country, day
