-- Orders of all games, each once however often it was sent, and what was given back of them, also months later.
-- Grain: one row per game_name and order_id; purchases without the store's order id have no row.
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column order_id: the store's id of the order
-- Column gamer_id: who bought it, by pseudonym
-- Column platform: {{ Dimension('event__platform') }}
-- Column country: where, ISO 3166-1 alpha-2
-- Column currency: the currency of price and refunded, ISO 4217
-- Column bought_at: when it was bought; null if only its refund is known
-- Column price: what was paid
-- Column refunded_at: when it was refunded; null if it was not
-- Column refunded: what was given back
-- Column state: bought, refunded, or partly_refunded
SELECT
    game_name,
    order_id,
    min(gamer_id) AS gamer_id,
    min(platform) AS platform,
    min(country) AS country,
    min(currency) AS currency,
    min(bought_at) AS bought_at,
    max(price) AS price,
    min(refunded_at) AS refunded_at,
    max(refunded) AS refunded,
    CASE
        WHEN max(refunded) IS NULL THEN 'bought'
        WHEN max(refunded) < max(price) THEN 'partly_refunded'
        ELSE 'refunded'
    END AS state
FROM gold.all_orders
WHERE order_id IS NOT NULL
  AND (bought_at IS NOT NULL OR refunded_at IS NOT NULL)
GROUP BY game_name, order_id
