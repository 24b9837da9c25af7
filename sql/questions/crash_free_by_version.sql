-- Which share of sessions and players has no crash, by version?
-- Grain: one row per game_name and app_version, over the last 14 days.
-- Asked by: analyst.
-- For: game programmer.
-- A crash is a fatal error. Sessions and players count once per day and platform.
SELECT
    game_name,
    app_version,
    sum(sessions) AS sessions,
    sum(crashes) AS crashes,
    round(1e0 - 1e0 * sum(crashed_sessions) / sum(sessions), 4) AS crash_free_sessions,
    round(1e0 - 1e0 * sum(crashed_players) / sum(players), 4) AS crash_free_players
FROM gold.version_stability
WHERE event_date >= current_date - INTERVAL '14' DAY
GROUP BY game_name, app_version, version_order
ORDER BY game_name, version_order
