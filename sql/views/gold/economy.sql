-- What players gained and spent: the sources and sinks of each currency and item.
-- Grain: one row per event_date, game_name, item and reason.
-- For each game: of those in contracts/games.yaml that have the table, whose events have the field resource.
-- Column event_date: {{ Dimension('event__event_date') }}
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column item: the currency or the item, as the game calls it
-- Column reason: what it came from, or was spent for; null where the game did not say
-- Column gained: how much all players gained
-- Column spent: how much all players spent, as a positive number
-- Column net: gained without spent
-- Column changes: how many events changed it
SELECT
    event_date,
    '{game_name}' AS game_name,
    item,
    reason,
    coalesce(CAST(gained AS double), 0e0) AS gained,
    coalesce(CAST(spent AS double), 0e0) AS spent,
    coalesce(CAST(gained AS double), 0e0) - coalesce(CAST(spent AS double), 0e0) AS net,
    changes
FROM gold.{game}_economy_daily
WHERE item <> ''
  AND changes > 0
