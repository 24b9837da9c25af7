-- At which hours of the day is most played?
-- Grain: one row per platform and hour of the day in UTC, over the 7 days before today.
-- Asked by: analyst.
SELECT
    platform,
    extract(HOUR FROM began) AS hour_of_day,
    count(*) AS sessions,
    round(1e0 * count(*) / sum(count(*)) OVER (PARTITION BY platform), 4) AS share
FROM gold.sessions
WHERE event_date >= current_date - INTERVAL '7' DAY
  AND event_date < current_date
GROUP BY platform, extract(HOUR FROM began)
ORDER BY platform, hour_of_day
