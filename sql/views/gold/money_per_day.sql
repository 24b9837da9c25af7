-- Sales, refunds and ad revenue of a day in each currency. Each order counts once, however often it was sent.
-- Grain: one row per event_date, game_name, platform, market and paid_in with a sale, a refund or a paid ad.
-- Column event_date: the day in the game's time zone; of an order the day of its first sale, of a refund the day of its first refund
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column platform: {{ Dimension('event__platform') }}
-- Column market: the country, ISO 3166-1 alpha-2; null if it is unknown
-- Column paid_in: the currency, ISO 4217; null if it is unknown
-- Column sales: purchases, new subscriptions and renewals with a price in any currency; an order counts once
-- Column gross_sales: what players paid, with tax and the store's fee; of an order the price of its latest sale event
-- Column refunds: sales whose price was given back
-- Column refunded: what was given back; of an order the amount of its latest refund event
-- Column paid_ads: ads that earned something
-- Column ad_revenue: what ads earned
WITH order_days AS (
    SELECT
        event_date,
        game_name,
        coalesce(store, '') AS store,
        order_id,
        platform,
        market,
        CASE WHEN sale.event_micros IS NOT NULL THEN event_date END AS sale_date,
        sale.event_micros AS sale_micros,
        sale.price AS sale_price,
        sale.currency AS sale_currency,
        CASE WHEN refund.event_micros IS NOT NULL THEN event_date END AS refund_date,
        refund.event_micros AS refund_micros,
        refund.price AS refund_price,
        refund.currency AS refund_currency
    FROM gold.all_orders
    WHERE order_id IS NOT NULL
),
repeated AS (
    -- Orders with events on other days too: few, so that this join is all that reads other days.
    SELECT
        here.event_date,
        here.game_name,
        here.store,
        here.order_id,
        min(other.platform) AS platform,
        min(other.market) AS market,
        min(other.sale_date) AS sale_date,
        max(other.sale_micros) AS sale_micros,
        max_by(other.sale_price, other.sale_micros) AS sale_price,
        max_by(other.sale_currency, other.sale_micros) AS sale_currency,
        min(other.refund_date) AS refund_date,
        max(other.refund_micros) AS refund_micros,
        max_by(other.refund_price, other.refund_micros) AS refund_price,
        max_by(other.refund_currency, other.refund_micros) AS refund_currency
    FROM order_days AS here
    INNER JOIN order_days AS other
        ON here.order_id = other.order_id
        AND here.game_name = other.game_name
        AND here.store = other.store
    WHERE here.event_date <> other.event_date
    GROUP BY here.event_date, here.game_name, here.store, here.order_id
),
orders AS (
    SELECT
        here.event_date,
        here.game_name,
        coalesce(here.platform, repeated.platform) AS platform,
        coalesce(here.market, repeated.market) AS market,
        here.sale_date IS NOT NULL AND coalesce(here.sale_date < repeated.sale_date, TRUE) AS is_sale,
        CASE WHEN repeated.sale_micros > here.sale_micros THEN repeated.sale_price ELSE here.sale_price END AS sale_price,
        CASE WHEN repeated.sale_micros > here.sale_micros THEN repeated.sale_currency ELSE here.sale_currency END AS sale_currency,
        here.refund_date IS NOT NULL AND coalesce(here.refund_date < repeated.refund_date, TRUE) AS is_refund,
        CASE WHEN repeated.refund_micros > here.refund_micros THEN repeated.refund_price ELSE here.refund_price END AS refund_price,
        CASE
            WHEN repeated.refund_micros > here.refund_micros THEN repeated.refund_currency
            ELSE here.refund_currency
        END AS refund_currency
    FROM order_days AS here
    LEFT JOIN repeated
        ON here.event_date = repeated.event_date
        AND here.game_name = repeated.game_name
        AND here.store = repeated.store
        AND here.order_id = repeated.order_id
),
amounts AS (
    SELECT
        event_date,
        game_name,
        platform,
        market,
        paid_in,
        sales,
        coalesce(CAST(gross_sales AS double), 0e0) AS gross_sales,
        refunds,
        coalesce(CAST(refunded AS double), 0e0) AS refunded,
        paid_ads,
        coalesce(CAST(ad_revenue AS double), 0e0) AS ad_revenue
    FROM gold.money_daily
    WHERE sales > 0 OR refunds > 0 OR paid_ads > 0
    UNION ALL
    SELECT
        event_date,
        game_name,
        platform,
        market,
        nullif(sale_currency, '') AS paid_in,
        count(*) AS sales,
        coalesce(CAST(sum(sale_price) AS double), 0e0) AS gross_sales,
        0 AS refunds,
        0e0 AS refunded,
        0 AS paid_ads,
        0e0 AS ad_revenue
    FROM orders
    WHERE is_sale
    GROUP BY event_date, game_name, platform, market, nullif(sale_currency, '')
    UNION ALL
    SELECT
        event_date,
        game_name,
        platform,
        market,
        nullif(refund_currency, '') AS paid_in,
        0 AS sales,
        0e0 AS gross_sales,
        count(*) AS refunds,
        coalesce(CAST(sum(refund_price) AS double), 0e0) AS refunded,
        0 AS paid_ads,
        0e0 AS ad_revenue
    FROM orders
    WHERE is_refund
    GROUP BY event_date, game_name, platform, market, nullif(refund_currency, '')
)
SELECT
    event_date,
    game_name,
    platform,
    market,
    paid_in,
    sum(sales) AS sales,
    sum(gross_sales) AS gross_sales,
    sum(refunds) AS refunds,
    sum(refunded) AS refunded,
    sum(paid_ads) AS paid_ads,
    sum(ad_revenue) AS ad_revenue
FROM amounts
GROUP BY event_date, game_name, platform, market, paid_in
