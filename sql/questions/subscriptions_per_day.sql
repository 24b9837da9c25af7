-- How many subscriptions does each game have, day by day, and what do they earn in a month?
-- Grain: one row per event_date and game_name that has had a subscription, of the last 30 days.
-- Asked by: analyst.
-- For: product manager.
-- MRR is in US dollars, with tax and the store's fee.
SELECT
    event_date,
    game_name,
    active,
    started,
    renewed,
    cancelled,
    expired,
    refunded,
    round(mrr, 2) AS mrr,
    without_rate
FROM gold.subscriptions_per_day
WHERE event_date >= current_date - INTERVAL '30' DAY
  AND event_date <= current_date
ORDER BY event_date, game_name
