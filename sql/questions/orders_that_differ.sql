-- Which orders does Google Play report at another price than the events, or are in one of the two only?
-- Grain: one row per game_name and order_id that differs, of orders of the last 30 days on days of imported reports.
-- Asked by: analyst.
-- For: analyst.
-- Reports of the App Store have no orders: see store_differences.sql.
WITH reported AS (
    SELECT
        game_name,
        order_id,
        min(event_date) AS reported_on,
        min(currency) AS currency,
        sum(amount) AS reported_price
    FROM gold.store_sales
    WHERE event_date >= current_date - INTERVAL '30' DAY
      AND event_date <= current_date
      AND order_id IS NOT NULL
      AND units > 0
    GROUP BY game_name, order_id
),
counted AS (
    SELECT
        orders.game_name,
        orders.order_id,
        CAST(orders.bought_at AS date) AS bought_on,
        orders.price
    FROM gold.orders AS orders
    WHERE orders.platform = 'android'
      AND orders.bought_at >= current_date - INTERVAL '30' DAY
      AND EXISTS (
        SELECT 1
        FROM reported
        WHERE reported.game_name = orders.game_name
          AND reported.reported_on = CAST(orders.bought_at AS date)
    )
)
SELECT
    coalesce(reported.game_name, counted.game_name) AS game_name,
    coalesce(reported.order_id, counted.order_id) AS order_id,
    reported.reported_on,
    counted.bought_on,
    round(CAST(reported.reported_price AS double), 2) AS reported_price,
    round(CAST(counted.price AS double), 2) AS counted_price
FROM reported
FULL JOIN counted
    ON reported.game_name = counted.game_name
    AND reported.order_id = counted.order_id
WHERE reported.order_id IS NULL
   OR counted.order_id IS NULL
   OR reported.reported_price IS DISTINCT FROM counted.price
ORDER BY game_name, order_id
