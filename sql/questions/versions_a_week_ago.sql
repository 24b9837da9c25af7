-- Which version did each game's players have a week ago, and how many of them have a different one now?
-- Grain: one row per game_name and version of that day.
-- Asked by: analyst.
-- For: product manager.
WITH a_week_ago AS (
    SELECT
        game_name,
        gamer_id,
        last_version
    FROM gold.player_history
    WHERE valid_from <= current_date - INTERVAL '7' DAY
      AND coalesce(valid_until > current_date - INTERVAL '7' DAY, TRUE)
)
SELECT
    before.game_name,
    coalesce(before.last_version, 'unknown') AS version,
    count(*) AS players,
    sum(CASE WHEN now.last_version IS DISTINCT FROM before.last_version THEN 1 ELSE 0 END) AS updated
FROM a_week_ago AS before
INNER JOIN gold.player_history AS now
    ON before.game_name = now.game_name
    AND before.gamer_id = now.gamer_id
WHERE now.valid_from <= current_date
  AND coalesce(now.valid_until > current_date, TRUE)
GROUP BY before.game_name, coalesce(before.last_version, 'unknown')
ORDER BY game_name, version
