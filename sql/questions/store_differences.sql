-- Where do the stores' sales reports differ from events?
-- Grain: one row per event_date, game_name, platform, country and currency that differs, of the last 30 days.
-- Asked by: analyst.
-- For: analyst.
-- Days without an imported report are left out. A positive difference is money without an event, a negative one a purchase
-- that the store doesn't know.
SELECT
    event_date,
    game_name,
    platform,
    country,
    currency,
    reported_units,
    counted_units,
    round(reported_amount, 2) AS reported_amount,
    round(counted_amount, 2) AS counted_amount,
    round(difference, 2) AS difference
FROM gold.store_differences
WHERE event_date >= current_date - INTERVAL '30' DAY
  AND event_date <= current_date
  AND (reported_units <> counted_units OR abs(difference) >= 0.005e0)
ORDER BY event_date, game_name, platform, country NULLS LAST, currency NULLS LAST
