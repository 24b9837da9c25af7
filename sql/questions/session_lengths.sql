-- How are session lengths distributed?
-- Grain: one row per platform and length, over the last 7 days.
-- Asked by: analyst.
-- For: analyst.
-- A session counts once, also one that crosses midnight.
WITH session AS (
    SELECT
        max(platform) AS platform,
        min(event_date) AS first_day,
        date_diff('second', min(began), max(ended)) / 60e0 AS minutes
    FROM gold.sessions
    WHERE event_date >= current_date - INTERVAL '8' DAY
    GROUP BY game_name, gamer_id, session_id
),
measured AS (
    SELECT
        platform,
        CASE
            WHEN minutes < 1 THEN '0 to 1 minute'
            WHEN minutes < 5 THEN '1 to 5 minutes'
            WHEN minutes < 15 THEN '5 to 15 minutes'
            WHEN minutes < 30 THEN '15 to 30 minutes'
            ELSE '30 minutes or more'
        END AS length,
        CASE
            WHEN minutes < 1 THEN 0
            WHEN minutes < 5 THEN 1
            WHEN minutes < 15 THEN 5
            WHEN minutes < 30 THEN 15
            ELSE 30
        END AS from_minute
    FROM session
    WHERE first_day >= current_date - INTERVAL '7' DAY
)
SELECT
    platform,
    from_minute,
    length,
    count(*) AS sessions,
    round(1e0 * count(*) / sum(count(*)) OVER (PARTITION BY platform), 4) AS share
FROM measured
GROUP BY platform, from_minute, length
ORDER BY platform, from_minute
