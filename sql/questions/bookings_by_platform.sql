-- How much was booked on each platform, day by day?
-- Grain: one row per event_date and platform with a purchase, of the last 30 days.
-- Asked by: analyst.
-- For: product manager.
-- Amounts are US dollars as the games report them; sums are rounded to cents at the end. A purchase that the game's server
-- reports has no session, and counts.
SELECT
    reporting_date AS event_date,
    platform,
    round(sum(amount), 2) AS bookings,
    count(DISTINCT gamer_id) AS payers
FROM silver.purchases
WHERE event_date >= current_date - INTERVAL '31' DAY
  AND reporting_date >= current_date - INTERVAL '30' DAY
GROUP BY reporting_date, platform
ORDER BY event_date, platform
