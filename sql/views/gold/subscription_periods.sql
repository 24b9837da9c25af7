-- The paid periods of subscriptions, their prices, and until when each gave access.
-- Grain: one row per game_name, gamer_id, product_id and paid_until.
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column gamer_id: who subscribed, by pseudonym
-- Column product_id: the subscription, by the store's name for it
-- Column store: the store that sold it; null if events do not name it
-- Column platform: {{ Dimension('event__platform') }}
-- Column market: the country, ISO 3166-1 alpha-2; null if it is unknown
-- Column begins_at: the period's first sale event; without one, its first event
-- Column paid_until: the end of the period, to the second
-- Column is_new: true if the player subscribed with this period
-- Column is_renewal: true if the subscription was renewed for this period
-- Column cancelled_at: when the player cancelled; access continues until paid_until
-- Column in_grace_at: when the store failed to renew the period; access continues for {{ Money('grace_end') }}
-- Column refunded_at: when the price was given back, which ends access
-- Column access_until: when access ends unless another period follows
-- Column next_begins_at: when the next period of the subscription began; null for the newest one
-- Column ends_at: when access by this period ended: at access_until, or when the next period took over
-- Column is_followed: true if the next period began before access ended
-- Column price: what was paid, by the latest sale event; null for a free trial
-- Column currency: the currency of price, ISO 4217
-- Column monthly_price: the price for 30.4375 days; of a period of less than a day, as in a store's sandbox, the whole price
WITH periods AS (
    SELECT
        game_name,
        gamer_id,
        product_id,
        store,
        platform,
        market,
        CASE
            WHEN started_at < renewed_at THEN started_at
            ELSE coalesce(renewed_at, started_at, seen_at)
        END AS begins_at,
        paid_until_second AS paid_until,
        started_at IS NOT NULL AS is_new,
        started_at IS NULL AND renewed_at IS NOT NULL AS is_renewal,
        cancelled_at,
        in_grace_at,
        refunded_at,
        sale.price AS price,
        nullif(sale.currency, '') AS currency
    FROM gold.all_subscription_periods
    WHERE gamer_id IS NOT NULL
      AND product_id IS NOT NULL
      AND paid_until_second IS NOT NULL
),
graced AS (
    SELECT
        game_name,
        gamer_id,
        product_id,
        store,
        platform,
        market,
        begins_at,
        paid_until,
        is_new,
        is_renewal,
        cancelled_at,
        in_grace_at,
        refunded_at,
        price,
        currency,
        CASE WHEN in_grace_at IS NULL THEN paid_until ELSE {{ Money('grace_end') }} END AS grace_until
    FROM periods
),
cancelled AS (
    -- A player who cancels in the days of grace loses access at once.
    SELECT
        game_name,
        gamer_id,
        product_id,
        store,
        platform,
        market,
        begins_at,
        paid_until,
        is_new,
        is_renewal,
        cancelled_at,
        in_grace_at,
        refunded_at,
        price,
        currency,
        CASE
            WHEN cancelled_at <= paid_until THEN paid_until
            WHEN cancelled_at <= grace_until THEN cancelled_at
            ELSE grace_until
        END AS granted_until
    FROM graced
),
refunded AS (
    SELECT
        game_name,
        gamer_id,
        product_id,
        store,
        platform,
        market,
        begins_at,
        paid_until,
        is_new,
        is_renewal,
        cancelled_at,
        in_grace_at,
        refunded_at,
        price,
        currency,
        CASE
            WHEN granted_until < begins_at OR refunded_at < begins_at THEN begins_at
            WHEN refunded_at < granted_until THEN refunded_at
            ELSE granted_until
        END AS access_until,
        lead(begins_at) OVER (
            PARTITION BY game_name, gamer_id, product_id ORDER BY begins_at, paid_until
        ) AS next_begins_at,
        date_diff('second', begins_at, paid_until) AS seconds
    FROM cancelled
)
SELECT
    game_name,
    gamer_id,
    product_id,
    store,
    platform,
    market,
    begins_at,
    paid_until,
    is_new,
    is_renewal,
    cancelled_at,
    in_grace_at,
    refunded_at,
    access_until,
    next_begins_at,
    CASE WHEN next_begins_at <= access_until THEN next_begins_at ELSE access_until END AS ends_at,
    coalesce(next_begins_at <= access_until, FALSE) AS is_followed,
    CAST(price AS double) AS price,
    currency,
    CASE
        WHEN seconds < 86400 THEN CAST(price AS double)
        ELSE CAST(price AS double) * 2629800e0 / seconds
    END AS monthly_price
FROM refunded
