-- What did each game earn on each day from sales and from ads, and for each of its players (ARPDAU)?
-- Grain: one row per event_date and game_name with players, of the last 30 days.
-- Asked by: analyst.
-- For: product manager.
-- US dollars, less refunds, taxes and store fees of contracts/money.yaml, by the rates of gold.currency_rates. `without_rate`
-- counts what no amount includes, since its currency has no rate.
SELECT
    event_date,
    game_name,
    players,
    round(gross, 2) AS gross,
    round(refunded, 2) AS refunded,
    round(net, 2) AS net,
    round(ad_revenue, 2) AS ad_revenue,
    round(arpdau_sales, 4) AS arpdau_sales,
    round(arpdau_ads, 4) AS arpdau_ads,
    round(arpdau, 4) AS arpdau,
    without_rate
FROM gold.revenue_per_day
WHERE event_date >= current_date - INTERVAL '30' DAY
  AND event_date <= current_date
ORDER BY event_date, game_name
