-- How many of a day's new players play 1, 7 and 30 days later?
-- Grain: one row per first_day and game_name, of the first days of the last 45 days.
-- Asked by: analyst.
-- For: product manager.
-- A share is null until its day is over. The players of a day that is not over are provisional.
SELECT
    cohort_date AS first_day,
    game_name,
    max(new_players) AS players,
    round(max(returned_retention) FILTER (WHERE day = 1 AND event_date < current_date), 4) AS day_1_share,
    round(max(returned_retention) FILTER (WHERE day = 7 AND event_date < current_date), 4) AS day_7_share,
    round(max(returned_retention) FILTER (WHERE day = 30 AND event_date < current_date), 4) AS day_30_share,
    cohort_date >= current_date AS is_provisional
FROM gold.kpi_cohorts
WHERE event_date >= current_date - INTERVAL '45' DAY
  AND cohort_date >= current_date - INTERVAL '45' DAY
GROUP BY cohort_date, game_name
ORDER BY first_day, game_name
