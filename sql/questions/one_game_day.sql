-- How is one game doing, day by day and on each platform?
-- Grain: one row per event_date and platform with players, of the last 14 days.
-- Asked by: analyst.
-- For: product manager.
-- A player of two versions on one day counts for both.
SELECT
    event_date,
    platform,
    sum(players) AS players,
    sum(sessions) AS sessions,
    sum(payers) AS payers,
    round(coalesce(CAST(sum(bookings) AS double), 0e0), 2) AS bookings,
    round(coalesce(CAST(sum(bookings) AS double), 0e0) / sum(players), 4) AS bookings_per_player
FROM gold.kart_rumble_daily_agg
WHERE event_date >= current_date - INTERVAL '14' DAY
  AND platform IS NOT NULL
  AND players > 0
GROUP BY event_date, platform
ORDER BY event_date, platform
