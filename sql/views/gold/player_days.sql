-- The players of each day, of all games.
-- Grain: one row per event_date, game_name and gamer_id that played on it.
-- Column event_date: {{ ReportingDate('event_time') }}
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column gamer_id: the player's pseudonym; the same for one player of one game
-- Column sessions_begun: {{ Metric('sessions_begun') }}
-- Column events: {{ Metric('events') }}
-- Column purchases: {{ Metric('purchases') }}
-- Column bookings: {{ Metric('bookings') }}
SELECT
    event_date,
    game_name,
    gamer_id,
    session_count AS sessions_begun,
    event_count AS events,
    purchase_count AS purchases,
    coalesce(CAST(bookings AS double), 0e0) AS bookings
FROM gold.all_player_days
WHERE event_count > 0
  AND gamer_id IS NOT NULL
