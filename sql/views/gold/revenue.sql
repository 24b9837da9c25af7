-- What each game earns on a day, in US dollars, by platform, country and currency.
-- Grain: one row per event_date, game_name, platform, market and paid_in with a sale, a refund or a paid ad.
-- Column event_date: the day in the game's time zone
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column platform: {{ Dimension('event__platform') }}
-- Column market: the country, ISO 3166-1 alpha-2; null if it is unknown
-- Column paid_in: the currency, ISO 4217; null if it is unknown
-- Column usd: how many US dollars a unit of the currency was worth on the day; null if gold.currency_rates has no rate
-- Column sales: purchases, new subscriptions and renewals with a price in any currency; an order counts once
-- Column gross: what players paid in US dollars, with tax and the store's fee; null without a rate
-- Column refunds: sales whose price was given back
-- Column refunded: what was given back, in US dollars; null without a rate
-- Column net: gross less refunded, less {{ Money('tax') }}, less {{ Money('store_fee') }}; null without a rate
-- Column paid_ads: ads that earned something
-- Column ad_revenue: what ads earned in US dollars; null without a rate
WITH converted AS (
    SELECT
        paid.event_date,
        paid.game_name,
        paid.platform,
        paid.market,
        paid.paid_in,
        rates.usd,
        paid.sales,
        paid.gross_sales * rates.usd AS gross,
        paid.refunds,
        paid.refunded * rates.usd AS refunded,
        paid.paid_ads,
        paid.ad_revenue * rates.usd AS ad_revenue
    FROM gold.money_per_day AS paid
    LEFT JOIN gold.currency_rates AS rates
        ON paid.paid_in = rates.currency
        AND paid.event_date >= rates.valid_from
        AND paid.event_date < rates.valid_until
)
SELECT
    event_date,
    game_name,
    platform,
    market,
    paid_in,
    usd,
    sales,
    gross,
    refunds,
    refunded,
    (gross - refunded) / (1e0 + {{ Money('tax') }}) * (1e0 - {{ Money('store_fee') }}) AS net,
    paid_ads,
    ad_revenue
FROM converted
