-- What each game earns on a day from sales and from ads, in US dollars, and for each of its players.
-- Grain: one row per event_date and game_name with players.
-- Column event_date: the day in the game's time zone
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column players: {{ Metric('players') }} (DAU)
-- Column gross: what players paid, with tax and the store's fee
-- Column refunded: what was given back
-- Column net: gross less refunds, taxes and store fees of contracts/money.yaml
-- Column ad_revenue: what ads earned
-- Column revenue: net and ad_revenue together
-- Column arpdau_sales: net for each player of the day
-- Column arpdau_ads: ad_revenue for each player of the day
-- Column arpdau: revenue for each player of the day
-- Column without_rate: sales, refunds and paid ads in currencies without a rate, which no amount includes
WITH earned AS (
    SELECT
        event_date,
        game_name,
        coalesce(sum(gross), 0e0) AS gross,
        coalesce(sum(refunded), 0e0) AS refunded,
        coalesce(sum(net), 0e0) AS net,
        coalesce(sum(ad_revenue), 0e0) AS ad_revenue,
        coalesce(sum(sales + refunds + paid_ads) FILTER (WHERE usd IS NULL), 0) AS without_rate
    FROM gold.revenue
    GROUP BY event_date, game_name
)
SELECT
    days.event_date,
    days.game_name,
    days.active_players AS players,
    coalesce(earned.gross, 0e0) AS gross,
    coalesce(earned.refunded, 0e0) AS refunded,
    coalesce(earned.net, 0e0) AS net,
    coalesce(earned.ad_revenue, 0e0) AS ad_revenue,
    coalesce(earned.net + earned.ad_revenue, 0e0) AS revenue,
    coalesce(earned.net, 0e0) / nullif(days.active_players, 0) AS arpdau_sales,
    coalesce(earned.ad_revenue, 0e0) / nullif(days.active_players, 0) AS arpdau_ads,
    coalesce(earned.net + earned.ad_revenue, 0e0) / nullif(days.active_players, 0) AS arpdau,
    coalesce(earned.without_rate, 0) AS without_rate
FROM gold.kpi_daily AS days
LEFT JOIN earned
    ON days.event_date = earned.event_date
    AND days.game_name = earned.game_name
