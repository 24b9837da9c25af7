-- Each game's day by platform and version.
-- Grain: one row per event_date, game_name, platform and app_version with players.
-- For each game: of those in contracts/games.yaml that have the table.
-- Column event_date: {{ ReportingDate('event_time') }}
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column platform: {{ Dimension('event__platform') }}
-- Column app_version: {{ Dimension('event__app_version') }}
-- Column version_order: orders versions: 1.9 before 1.10, a pre-release before its release
-- Column players: {{ Metric('players') }}; a player of two versions on one day counts for both
-- Column payers: {{ Metric('payers') }}
-- Column sessions: {{ Metric('sessions') }}
-- Column bookings: {{ Metric('bookings') }}
-- Column median_purchase: {{ Metric('median_purchase') }}
SELECT
    event_date,
    '{game_name}' AS game_name,
    platform,
    app_version,
    regexp_replace(regexp_replace(app_version, '([0-9]+)', '0000000000$1'), '0*([0-9]{10})', '$1') || '.' AS version_order,
    players,
    payers,
    sessions,
    coalesce(CAST(bookings AS double), 0e0) AS bookings,
    median_purchase
FROM gold.{game}_daily_agg
WHERE platform IS NOT NULL
  AND app_version IS NOT NULL
