-- How much have new players paid 7 and 30 days after their first day (LTV), by the source that brought them?
-- Grain: one row per game_name, source and day, of the first days of the last 90 days.
-- Asked by: analyst.
-- For: product manager.
-- Only days that were over in the game's time zone when today began in UTC. Only older cohorts have later days: `players` is the number of players behind a value.
SELECT
    game_name,
    value AS source,
    day,
    sum(new_players) AS players,
    round(CAST(sum(cumulative_bookings) AS double) / sum(new_players), 4) AS lifetime_value,
    round(1e0 * sum(payers) / sum(new_players), 4) AS conversion
FROM gold.kpi_cohorts_by
WHERE dimension = 'source'
  AND event_date >= current_date - INTERVAL '90' DAY
  AND cohort_date >= current_date - INTERVAL '90' DAY
  AND provisional_until <= CAST(current_date AS timestamp) + INTERVAL '180' MINUTE
  AND day IN (7, 30)
GROUP BY game_name, value, day
ORDER BY game_name, source, day
