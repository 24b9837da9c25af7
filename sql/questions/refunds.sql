-- How many of the orders of each month were refunded since, and what were they worth?
-- Grain: one row per month of purchase, game_name and currency, of orders with the store's order id.
-- Asked by: analyst.
-- For: product manager.
-- An order counts once, however often it was sent. Amounts are in the order's currency.
SELECT
    date_trunc('month', bought_at) AS month,
    game_name,
    currency,
    count(*) AS orders,
    round(CAST(sum(price) AS double), 2) AS price,
    count(refunded_at) AS refunds,
    round(coalesce(CAST(sum(refunded) AS double), 0e0), 2) AS refunded,
    round(1e0 * count(refunded_at) / count(*), 4) AS refund_rate
FROM gold.orders
WHERE bought_at IS NOT NULL
GROUP BY date_trunc('month', bought_at), game_name, currency
ORDER BY month, game_name, currency
