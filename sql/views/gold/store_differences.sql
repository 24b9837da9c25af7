-- Sales in a store's report compared with events, for each day of an imported report.
-- Grain: one row per event_date, game_name, platform, country and currency with sales or refunds in either.
-- Column event_date: the day; a store may end it at another hour than the game's events
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column platform: ios for the App Store, android for Google Play
-- Column country: ISO 3166-1 alpha-2; null if it is unknown
-- Column currency: of the amounts, ISO 4217; null if it is unknown
-- Column reported_units: sales less refunds in the report
-- Column counted_units: sales less refunds in events
-- Column reported_amount: what players paid less refunds, by the report
-- Column counted_amount: what players paid less refunds, by events
-- Column difference: reported_amount less counted_amount
WITH reported AS (
    SELECT
        event_date,
        game_name,
        CASE WHEN store = 'app_store' THEN 'ios' ELSE 'android' END AS platform,
        country,
        currency,
        units,
        amount
    FROM gold.store_sales
),
days AS (
    SELECT DISTINCT
        event_date,
        game_name,
        platform
    FROM reported
),
sides AS (
    SELECT
        event_date,
        game_name,
        platform,
        country,
        currency,
        units AS reported_units,
        0 AS counted_units,
        CAST(amount AS double) AS reported_amount,
        0e0 AS counted_amount
    FROM reported
    UNION ALL
    SELECT
        paid.event_date,
        paid.game_name,
        paid.platform,
        paid.market AS country,
        paid.paid_in AS currency,
        0 AS reported_units,
        paid.sales - paid.refunds AS counted_units,
        0e0 AS reported_amount,
        paid.gross_sales - paid.refunded AS counted_amount
    FROM gold.money_per_day AS paid
    INNER JOIN days
        ON paid.event_date = days.event_date
        AND paid.game_name = days.game_name
        AND paid.platform = days.platform
    WHERE paid.sales > 0 OR paid.refunds > 0
)
SELECT
    event_date,
    game_name,
    platform,
    country,
    currency,
    sum(reported_units) AS reported_units,
    sum(counted_units) AS counted_units,
    sum(reported_amount) AS reported_amount,
    sum(counted_amount) AS counted_amount,
    sum(reported_amount) - sum(counted_amount) AS difference
FROM sides
GROUP BY event_date, game_name, platform, country, currency
