-- Each game's day by platform and version.
-- Grain: one row per event_date, game_name, platform and app_version with players.
-- For each game: of those in contracts/games.yaml that have the table.
-- Column event_date: the day in UTC
-- Column game_name: the title
-- Column platform: the device's platform
-- Column app_version: the game's version
-- Column players: distinct players; a player of two versions on one day counts for both
-- Column payers: distinct players who bought something
-- Column sessions: different sessions
-- Column bookings: what was paid, in US dollars
-- Column median_purchase: the middle one of the day's prices, in US dollars
SELECT
    event_date,
    '{game_name}' AS game_name,
    platform,
    app_version,
    players,
    payers,
    sessions,
    coalesce(CAST(bookings AS double), 0e0) AS bookings,
    median_purchase
FROM gold.{game}_daily_agg
WHERE platform IS NOT NULL
  AND app_version IS NOT NULL
