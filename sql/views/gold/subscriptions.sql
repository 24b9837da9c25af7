-- Subscriptions of all games, and their state now.
-- Grain: one row per game_name, gamer_id and product_id, however often it was renewed.
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column gamer_id: who subscribed, by pseudonym
-- Column product_id: the subscription, by the store's name for it
-- Column store: the store that sold the newest period
-- Column platform: {{ Dimension('event__platform') }}
-- Column market: the country, ISO 3166-1 alpha-2; null if it is unknown
-- Column started_at: when the first period began
-- Column periods: paid periods
-- Column renewals: periods that renewed the subscription
-- Column paid_until: until when the newest period is paid
-- Column access_until: until when the newest period gives access
-- Column cancelled_at: when the player cancelled the newest period; null if it was not cancelled
-- Column in_grace_at: when the store failed to renew the newest period; null if it did not
-- Column refunded_at: when the newest period was refunded
-- Column price: what the newest period cost, in its currency
-- Column currency: ISO 4217
-- Column state: active, cancelled_but_paid, in_grace, expired or refunded
WITH ordered AS (
    SELECT
        game_name,
        gamer_id,
        product_id,
        store,
        platform,
        market,
        min(begins_at) OVER (PARTITION BY game_name, gamer_id, product_id) AS started_at,
        count(*) OVER (PARTITION BY game_name, gamer_id, product_id) AS periods,
        sum(CASE WHEN is_renewal THEN 1 ELSE 0 END) OVER (PARTITION BY game_name, gamer_id, product_id) AS renewals,
        paid_until,
        access_until,
        next_begins_at,
        cancelled_at,
        in_grace_at,
        refunded_at,
        price,
        currency
    FROM gold.subscription_periods
)
SELECT
    game_name,
    gamer_id,
    product_id,
    store,
    platform,
    market,
    started_at,
    periods,
    renewals,
    paid_until,
    access_until,
    cancelled_at,
    in_grace_at,
    refunded_at,
    price,
    currency,
    CASE
        WHEN refunded_at <= access_until AND refunded_at <= current_timestamp THEN 'refunded'
        WHEN access_until <= current_timestamp THEN 'expired'
        WHEN paid_until <= current_timestamp THEN 'in_grace'
        WHEN cancelled_at <= current_timestamp THEN 'cancelled_but_paid'
        ELSE 'active'
    END AS state
FROM ordered
WHERE next_begins_at IS NULL
