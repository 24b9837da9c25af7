-- How long is it since a game's players were last seen?
-- Grain: one row per game_name, over all players of all time.
-- Asked by: analyst.
-- For: live-ops manager.
SELECT
    game_name,
    count(*) AS players,
    count(*) FILTER (WHERE last_seen >= current_date - INTERVAL '1' DAY) AS seen_since_yesterday,
    count(*) FILTER (WHERE last_seen >= current_date - INTERVAL '7' DAY) AS seen_in_a_week,
    count(*) FILTER (WHERE last_seen < current_date - INTERVAL '14' DAY) AS away_for_two_weeks,
    round(
        1e0 * count(*) FILTER (WHERE last_seen < current_date - INTERVAL '14' DAY) / count(*),
        4
    ) AS lapsed_share
FROM gold.players
GROUP BY game_name
ORDER BY game_name
