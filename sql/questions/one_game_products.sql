-- What does one game sell, and at what price?
-- Grain: one row per product_id, over the last 30 days.
-- Asked by: analyst.
-- For: product manager.
-- A game's own table has all fields of its messages: here the nested message purchase, which version 1 of the event did
-- not have.
SELECT
    purchase.product_id AS product_id,
    count(*) AS purchases,
    sum(purchase.quantity) AS pieces,
    count(DISTINCT gamer_id) AS payers,
    round(sum(amount), 2) AS bookings,
    round(1e0 * count(*) / sum(count(*)) OVER (), 4) AS share_of_purchases
FROM silver.kart_rumble_events
WHERE event_date >= current_date - INTERVAL '30' DAY
  AND event_name = 'purchase'
  AND purchase.product_id IS NOT NULL
GROUP BY purchase.product_id
ORDER BY bookings DESC, product_id
