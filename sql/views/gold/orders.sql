-- Orders of all games and their refunds, even months later. Each order has one row, however often it was sent.
-- Grain: one row per game_name, store and order_id; sales without the store's order id have no row.
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column store: the store that sold it; null if events do not name it
-- Column order_id: the store's id of the order
-- Column gamer_id: who bought it, by pseudonym
-- Column product_id: what was bought, by the store's name for it
-- Column platform: {{ Dimension('event__platform') }}
-- Column country: where, ISO 3166-1 alpha-2
-- Column currency: the currency of price and refunded, ISO 4217
-- Column bought_at: when it was bought: the first sale event; null if only its refund is known
-- Column price: what was paid, by the latest sale event
-- Column refunded_at: when it was refunded: the first refund event; null if it was not
-- Column refunded: what was given back, by the latest refund event
-- Column state: bought, refunded, or partly_refunded
WITH days AS (
    SELECT
        game_name,
        store,
        order_id,
        gamer_id,
        product_id,
        platform,
        market,
        bought_at,
        sale.event_micros AS sale_micros,
        sale.price AS price,
        nullif(sale.currency, '') AS sale_currency,
        refunded_at,
        refund.event_micros AS refund_micros,
        refund.price AS refunded,
        nullif(refund.currency, '') AS refund_currency
    FROM gold.all_orders
    WHERE order_id IS NOT NULL
      AND (bought_at IS NOT NULL OR refunded_at IS NOT NULL)
),
orders AS (
    SELECT
        game_name,
        store,
        order_id,
        min(gamer_id) AS gamer_id,
        min(product_id) AS product_id,
        min(platform) AS platform,
        min(market) AS country,
        coalesce(max_by(sale_currency, sale_micros), max_by(refund_currency, refund_micros)) AS currency,
        min(bought_at) AS bought_at,
        max_by(price, sale_micros) AS price,
        min(refunded_at) AS refunded_at,
        max_by(refunded, refund_micros) AS refunded
    FROM days
    GROUP BY game_name, store, order_id
)
SELECT
    game_name,
    store,
    order_id,
    gamer_id,
    product_id,
    platform,
    country,
    currency,
    bought_at,
    price,
    refunded_at,
    refunded,
    CASE
        WHEN refunded_at IS NULL THEN 'bought'
        WHEN refunded < price THEN 'partly_refunded'
        ELSE 'refunded'
    END AS state
FROM orders
