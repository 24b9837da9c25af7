-- At which level of one game do players give up?
-- Grain: one row per level up to 30, over the last 30 days.
-- Asked by: analyst.
-- For: game programmer.
-- For another game, name its table; `SHOW TABLES FROM silver` lists them.
SELECT
    level,
    count(DISTINCT gamer_id) FILTER (WHERE event_name = 'level_started') AS players_who_started,
    count(DISTINCT gamer_id) FILTER (WHERE event_name = 'level_completed') AS players_who_completed,
    count(*) FILTER (WHERE event_name = 'level_failed') AS failures,
    round(
        1e0 * count(DISTINCT gamer_id) FILTER (WHERE event_name = 'level_completed')
            / nullif(count(DISTINCT gamer_id) FILTER (WHERE event_name = 'level_started'), 0),
        4
    ) AS completing_share
FROM silver.kart_rumble_events
WHERE event_date >= current_date - INTERVAL '30' DAY
  AND event_name IN ('level_started', 'level_completed', 'level_failed')
  AND level <= 30
GROUP BY level
ORDER BY level
