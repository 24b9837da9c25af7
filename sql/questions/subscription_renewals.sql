-- How many paid periods of subscriptions were renewed, cancelled or refunded?
-- Grain: one row per month of the period's end, game_name and product_id, of periods that are over.
-- Asked by: analyst.
-- For: product manager.
-- A period counts as renewed if the next one began before access ended, days of grace included.
SELECT
    date_trunc('month', paid_until) AS month,
    game_name,
    product_id,
    count(*) AS periods,
    sum(CASE WHEN is_followed THEN 1 ELSE 0 END) AS renewed,
    count(cancelled_at) AS cancelled,
    count(in_grace_at) AS in_grace,
    count(refunded_at) AS refunded,
    round(1e0 * sum(CASE WHEN is_followed THEN 1 ELSE 0 END) / count(*), 4) AS renewal_rate
FROM gold.subscription_periods
WHERE paid_until < current_date
GROUP BY date_trunc('month', paid_until), game_name, product_id
ORDER BY month, game_name, product_id
