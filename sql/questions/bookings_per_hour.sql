-- How much was booked in each game, hour by hour?
-- Grain: one row per hour and game_name with a purchase, of today and the three days before.
-- Asked by: analyst.
-- For: product manager.
-- Hours to come, of devices whose clock is ahead, are left out.
SELECT
    date_trunc('hour', event_time) AS hour,
    game_name,
    count(*) AS purchases,
    count(DISTINCT gamer_id) AS payers,
    round(sum(amount), 2) AS bookings
FROM silver.purchases
WHERE event_date >= current_date - INTERVAL '3' DAY
  AND event_time <= current_timestamp
GROUP BY date_trunc('hour', event_time), game_name
ORDER BY hour DESC, game_name
