-- How fast do players move to a new version?
-- Grain: one row per event_date, game_name and app_version with sessions, of the last 14 days.
-- Asked by: analyst.
-- For: game programmer.
-- gold.versions_per_day has the players of each version; a player who updates during a day counts for both.
SELECT
    event_date,
    game_name,
    app_version,
    count(*) AS sessions,
    round(1e0 * count(*) / sum(count(*)) OVER (PARTITION BY event_date, game_name), 4) AS share
FROM gold.sessions
WHERE event_date >= current_date - INTERVAL '14' DAY
GROUP BY event_date, game_name, app_version, version_order
ORDER BY event_date, game_name, version_order
