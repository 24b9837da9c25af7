-- Subscriptions of each game on each day: active, new, renewed, lost, and the monthly recurring revenue (MRR).
-- Grain: one row per event_date and game_name, from the first subscription on.
-- Column event_date: the day in the game's time zone; the row of a day that is not over assumes that nothing more is renewed on it
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column active: subscriptions with access at the end of the day, also in grace or cancelled
-- Column started: periods of the day with which a player subscribed
-- Column renewed: periods of the day that renewed a subscription
-- Column cancelled: subscriptions that players cancelled on the day
-- Column expired: subscriptions whose access ended on the day
-- Column refunded: those of them that a refund ended
-- Column mrr: the monthly prices of the active subscriptions, in US dollars by the day's rates, with tax and the store's fee
-- Column without_rate: active subscriptions with a price in a currency without a rate, which mrr leaves out
WITH moves AS (
    SELECT
        {{ ReportingDate('begins_at') }} AS event_date,
        game_name,
        coalesce(currency, '') AS currency,
        1 AS active,
        CASE WHEN price IS NULL THEN 0 ELSE 1 END AS priced,
        CASE WHEN is_new THEN 1 ELSE 0 END AS started,
        CASE WHEN is_renewal THEN 1 ELSE 0 END AS renewed,
        0 AS cancelled,
        0 AS expired,
        0 AS refunded,
        coalesce(monthly_price, 0e0) AS monthly_price
    FROM gold.subscription_periods
    UNION ALL
    SELECT
        {{ ReportingDate('ends_at') }} AS event_date,
        game_name,
        coalesce(currency, '') AS currency,
        -1 AS active,
        CASE WHEN price IS NULL THEN 0 ELSE -1 END AS priced,
        0 AS started,
        0 AS renewed,
        0 AS cancelled,
        CASE WHEN is_followed THEN 0 ELSE 1 END AS expired,
        CASE WHEN NOT is_followed AND refunded_at <= access_until THEN 1 ELSE 0 END AS refunded,
        -1e0 * coalesce(monthly_price, 0e0) AS monthly_price
    FROM gold.subscription_periods
    UNION ALL
    SELECT
        {{ ReportingDate('cancelled_at') }} AS event_date,
        game_name,
        coalesce(currency, '') AS currency,
        0 AS active,
        0 AS priced,
        0 AS started,
        0 AS renewed,
        1 AS cancelled,
        0 AS expired,
        0 AS refunded,
        0e0 AS monthly_price
    FROM gold.subscription_periods
    WHERE cancelled_at IS NOT NULL
),
-- Each day has a row for each currency, also a day on which nothing moved, or on which only another currency did.
still AS (
    SELECT
        dates.event_date,
        dates.game_name,
        currencies.currency,
        0 AS active,
        0 AS priced,
        0 AS started,
        0 AS renewed,
        0 AS cancelled,
        0 AS expired,
        0 AS refunded,
        0e0 AS monthly_price
    FROM (
        SELECT
            event_date,
            game_name
        FROM gold.kpi_daily
        UNION
        SELECT
            event_date,
            game_name
        FROM moves
    ) AS dates
    INNER JOIN (
        SELECT
            game_name,
            currency,
            min(event_date) AS first_date
        FROM moves
        GROUP BY game_name, currency
    ) AS currencies
        ON dates.game_name = currencies.game_name
        AND dates.event_date >= currencies.first_date
),
days AS (
    SELECT
        event_date,
        game_name,
        currency,
        sum(active) AS active,
        sum(priced) AS priced,
        sum(started) AS started,
        sum(renewed) AS renewed,
        sum(cancelled) AS cancelled,
        sum(expired) AS expired,
        sum(refunded) AS refunded,
        sum(monthly_price) AS monthly_price
    FROM (SELECT * FROM moves UNION ALL SELECT * FROM still) AS all_moves
    GROUP BY event_date, game_name, currency
),
running AS (
    SELECT
        event_date,
        game_name,
        currency,
        sum(active) OVER (
            PARTITION BY game_name, currency ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS active,
        sum(priced) OVER (
            PARTITION BY game_name, currency ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS priced,
        started,
        renewed,
        cancelled,
        expired,
        refunded,
        sum(monthly_price) OVER (
            PARTITION BY game_name, currency ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS monthly_price
    FROM days
),
last_days AS (
    SELECT
        game_name,
        max(event_date) AS last_date
    FROM gold.kpi_daily
    GROUP BY game_name
)
SELECT
    running.event_date,
    running.game_name,
    sum(running.active) AS active,
    sum(running.started) AS started,
    sum(running.renewed) AS renewed,
    sum(running.cancelled) AS cancelled,
    sum(running.expired) AS expired,
    sum(running.refunded) AS refunded,
    coalesce(sum(running.monthly_price * rates.usd), 0e0) AS mrr,
    coalesce(sum(running.priced) FILTER (WHERE rates.usd IS NULL), 0) AS without_rate
FROM running
INNER JOIN last_days
    ON running.game_name = last_days.game_name
    AND running.event_date <= last_days.last_date
LEFT JOIN gold.currency_rates AS rates
    ON running.currency = rates.currency
    AND running.event_date >= rates.valid_from
    AND running.event_date < rates.valid_until
GROUP BY running.event_date, running.game_name
