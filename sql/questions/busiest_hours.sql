-- At which hours of the day do players play most?
-- Grain: one row per platform and hour of the day in UTC, over the 7 days before today.
-- Asked by: analyst.
-- For: analyst.
-- A session counts once, at the hour when it began, also one that crosses midnight.
WITH session AS (
    SELECT
        max(platform) AS platform,
        min(began) AS began,
        min(event_date) AS first_day
    FROM gold.sessions
    WHERE event_date >= current_date - INTERVAL '8' DAY
      AND event_date < current_date
    GROUP BY game_name, gamer_id, session_id
)
SELECT
    platform,
    extract(HOUR FROM began) AS hour_of_day,
    count(*) AS sessions,
    round(1e0 * count(*) / sum(count(*)) OVER (PARTITION BY platform), 4) AS share
FROM session
WHERE first_day >= current_date - INTERVAL '7' DAY
GROUP BY platform, extract(HOUR FROM began)
ORDER BY platform, hour_of_day
