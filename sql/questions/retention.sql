-- How many of a day's new players play 1, 7 and 30 days later?
-- Grain: one row per first_day and game_name, of the first days of the last 45 days.
-- Asked by: analyst.
-- For: product manager.
-- A share is null unless its day was over, in the game's time zone, when today began in UTC. The players of a day that was
-- not are provisional.
WITH cohort AS (
    SELECT
        cohort_date,
        game_name,
        day,
        new_players,
        returned_retention,
        provisional_until <= CAST(current_date AS timestamp) + INTERVAL '180' MINUTE AS is_over
    FROM gold.kpi_cohorts
    WHERE event_date >= current_date - INTERVAL '45' DAY
      AND cohort_date >= current_date - INTERVAL '45' DAY
)
SELECT
    cohort_date AS first_day,
    game_name,
    max(new_players) AS players,
    round(max(returned_retention) FILTER (WHERE day = 1 AND is_over), 4) AS day_1_share,
    round(max(returned_retention) FILTER (WHERE day = 7 AND is_over), 4) AS day_7_share,
    round(max(returned_retention) FILTER (WHERE day = 30 AND is_over), 4) AS day_30_share,
    count(*) FILTER (WHERE day = 0 AND is_over) = 0 AS is_provisional
FROM cohort
GROUP BY cohort_date, game_name
ORDER BY first_day, game_name
