-- How many players does each segment have now, and what share of the game's players is that?
-- Grain: one row per game_name and segment.
-- Asked by: analyst.
-- For: live-ops manager.
-- A player can be in several segments; contracts/segments.yaml declares them.
WITH games AS (
    SELECT game_name, count(*) AS players
    FROM gold.kpi_players
    GROUP BY game_name
)
SELECT
    segments.game_name,
    segments.segment,
    segments.players,
    1e0 * segments.players / games.players AS share
FROM gold.segments AS segments
INNER JOIN games ON segments.game_name = games.game_name
ORDER BY segments.game_name, segments.segment
