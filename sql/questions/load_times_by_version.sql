-- How long do players wait for the game and for its levels, by version?
-- Grain: one row per game_name, event_name, platform and app_version, yesterday.
-- Asked by: analyst.
-- For: game programmer.
-- Percentiles of days can't be added up: each day has its own.
SELECT
    game_name,
    event_name,
    platform,
    app_version,
    loads,
    load_ms_p50,
    load_ms_p90,
    load_ms_p99
FROM gold.load_times
WHERE event_date = current_date - INTERVAL '1' DAY
ORDER BY game_name, event_name, platform, version_order
