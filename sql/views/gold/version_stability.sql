-- Crashes of each game by day, platform and version.
-- Grain: one row per event_date, game_name, platform and app_version with sessions.
-- For each game: of those in contracts/games.yaml that have the table, whose events have the field error.
-- Column event_date: {{ Dimension('event__event_date') }}
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column platform: {{ Dimension('event__platform') }}
-- Column app_version: {{ Dimension('event__app_version') }}
-- Column version_order: orders versions: 1.9 before 1.10, a pre-release before its release
-- Column sessions: {{ Metric('sessions') }}; one that crosses midnight, or has two versions, counts for both
-- Column players: {{ Metric('players') }}
-- Column crashed_sessions: sessions with a fatal error on that day and in that version
-- Column crashed_players: players with a fatal error
-- Column crashes: fatal errors
SELECT
    event_date,
    '{game_name}' AS game_name,
    platform,
    app_version,
    regexp_replace(regexp_replace(app_version, '([0-9]+)', '0000000000$1'), '0*([0-9]{10})', '$1') || '.' AS version_order,
    sessions,
    players,
    crashed_sessions,
    crashed_players,
    crashes
FROM gold.{game}_version_stability
WHERE platform IS NOT NULL
  AND app_version IS NOT NULL
  AND sessions > 0
