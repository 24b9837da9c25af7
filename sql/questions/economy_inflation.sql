-- Do players hold more of each currency and item every day?
-- Grain: one row per game_name, item and event_date of the last 14 days on which it was gained or spent.
-- Asked by: analyst.
-- For: live-ops manager.
-- `circulation` sums the changes since the game's first event with a resource; inflation is null on its first day.
SELECT
    game_name,
    item,
    event_date,
    gained,
    spent,
    circulation,
    round(inflation, 4) AS inflation,
    event_date >= current_date AS is_provisional
FROM gold.economy_balances
WHERE event_date >= current_date - INTERVAL '14' DAY
ORDER BY game_name, item, event_date
