-- Which share of new players plays on day 1, 7 or 30 after the first one, or on any later day (rolling retention)?
-- Grain: one row per game_name and day, of the first days of the last 90 days.
-- Asked by: analyst.
-- For: product manager.
-- All later days up to now count, so a share grows as long as players return. Only players whose day N was over when today began in UTC.
WITH numbers AS (
    SELECT 1 AS day
    UNION ALL
    SELECT 7 AS day
    UNION ALL
    SELECT 30 AS day
)
SELECT
    cohort.game_name,
    numbers.day,
    count(*) AS players,
    count(*) FILTER (WHERE date_diff('day', cohort.first_day, cohort.last_day) >= numbers.day) AS returned_players,
    round(
        1e0 * count(*) FILTER (WHERE date_diff('day', cohort.first_day, cohort.last_day) >= numbers.day) / count(*), 4
    ) AS rolling_retention
FROM gold.players AS cohort
INNER JOIN numbers ON date_diff('day', cohort.first_day, current_date) > numbers.day
WHERE cohort.first_day >= current_date - INTERVAL '90' DAY
GROUP BY cohort.game_name, numbers.day
ORDER BY cohort.game_name, numbers.day
