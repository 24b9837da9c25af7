-- Where do currencies and items come from, and where do they go?
-- Grain: one row per game_name, item and reason, over the last 7 days.
-- Asked by: analyst.
-- For: live-ops manager.
SELECT
    game_name,
    item,
    reason,
    sum(gained) AS gained,
    sum(spent) AS spent,
    round(sum(gained) / nullif(sum(sum(gained)) OVER (PARTITION BY game_name, item), 0e0), 4) AS share_of_gained,
    round(sum(spent) / nullif(sum(sum(spent)) OVER (PARTITION BY game_name, item), 0e0), 4) AS share_of_spent
FROM gold.economy
WHERE event_date >= current_date - INTERVAL '7' DAY
  AND reason IS NOT NULL
GROUP BY game_name, item, reason
ORDER BY game_name, item, reason
