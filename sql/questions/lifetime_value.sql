-- What have new players paid up to each day after the first one (LTV), and how many of them have paid?
-- Grain: one row per game_name and day, of the first days of the last 90 days; day 0 is the first day.
-- Asked by: analyst.
-- For: product manager.
-- Days that were over, in the game's time zone, when today began in UTC. Only older cohorts have later days, so that a sum may be less than the one of the day before:
-- `players` has the number of players that it is of.
SELECT
    game_name,
    day,
    sum(new_players) AS players,
    round(CAST(sum(cumulative_bookings) AS double), 2) AS bookings,
    round(CAST(sum(cumulative_bookings) AS double) / sum(new_players), 4) AS lifetime_value,
    sum(payers) AS payers,
    round(1e0 * sum(payers) / sum(new_players), 4) AS conversion
FROM gold.kpi_cohorts
WHERE event_date >= current_date - INTERVAL '90' DAY
  AND provisional_until <= CAST(current_date AS timestamp) + INTERVAL '180' MINUTE
  AND cohort_date >= current_date - INTERVAL '90' DAY
GROUP BY game_name, day
ORDER BY game_name, day
