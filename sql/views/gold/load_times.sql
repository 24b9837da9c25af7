-- How long players waited for the game and its levels.
-- Grain: one row per event_date, game_name, event_name, platform and app_version with load times.
-- For each game: of those in contracts/games.yaml that have the table, whose events have the field load_ms.
-- Column event_date: {{ Dimension('event__event_date') }}
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column event_name: what the player waited for, such as session_start or level_started
-- Column platform: {{ Dimension('event__platform') }}
-- Column app_version: {{ Dimension('event__app_version') }}
-- Column version_order: orders versions: 1.9 before 1.10, a pre-release before its release
-- Column loads: how often a player waited
-- Column load_ms_p50: half of the waits took no longer, in milliseconds
-- Column load_ms_p90: nine of ten waits took no longer, in milliseconds
-- Column load_ms_p99: 99 of 100 waits took no longer, in milliseconds
SELECT
    event_date,
    '{game_name}' AS game_name,
    event_name,
    platform,
    app_version,
    regexp_replace(regexp_replace(app_version, '([0-9]+)', '0000000000$1'), '0*([0-9]{10})', '$1') || '.' AS version_order,
    loads,
    load_ms_p50,
    load_ms_p90,
    load_ms_p99
FROM gold.{game}_load_times
WHERE platform IS NOT NULL
  AND app_version IS NOT NULL
  AND loads > 0
