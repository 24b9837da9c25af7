-- How much of each currency and item all players have, and how fast it grows.
-- Grain: one row per event_date, game_name and item that was gained or spent on the day.
-- Column event_date: {{ Dimension('event__event_date') }}
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column item: the currency or the item, as the game calls it
-- Column gained: how much all players gained on the day
-- Column spent: how much all players spent on the day, as a positive number
-- Column net: gained without spent
-- Column circulation: the sum of all changes up to the end of the day; what players had before the first event is not in it
-- Column inflation: net / the circulation at the end of the day before; null unless that is above 0
WITH days AS (
    SELECT
        event_date,
        game_name,
        item,
        sum(gained) AS gained,
        sum(spent) AS spent,
        sum(net) AS net
    FROM gold.economy
    GROUP BY event_date, game_name, item
),
totals AS (
    SELECT
        event_date,
        game_name,
        item,
        gained,
        spent,
        net,
        sum(net) OVER (
            PARTITION BY game_name, item ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS circulation
    FROM days
)
SELECT
    event_date,
    game_name,
    item,
    gained,
    spent,
    net,
    circulation,
    CASE WHEN circulation - net > 0 THEN net / (circulation - net) END AS inflation
FROM totals
