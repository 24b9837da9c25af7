-- Which countries do sales come from, and how much of them is left after refunds, taxes and store fees?
-- Grain: one row per country and currency with a sale or a refund, of the last 30 days.
-- Asked by: analyst.
-- For: product manager.
-- US dollars, by the rates of gold.currency_rates; null for a currency without a rate.
SELECT
    market AS country,
    paid_in,
    sum(sales) AS sales,
    sum(refunds) AS refunds,
    round(sum(gross), 2) AS gross,
    round(sum(refunded), 2) AS refunded,
    round(sum(net), 2) AS net
FROM gold.revenue
WHERE event_date >= current_date - INTERVAL '30' DAY
  AND event_date <= current_date
  AND (sales > 0 OR refunds > 0)
GROUP BY market, paid_in
ORDER BY market NULLS LAST, paid_in NULLS LAST
