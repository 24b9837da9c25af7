-- All players of all time, of all games.
-- Grain: one row per game_name and gamer_id.
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column gamer_id: the player's pseudonym; the same for one player of one game
-- Column sessions_begun: {{ Metric('sessions_begun') }}
-- Column events: {{ Metric('events') }}
-- Column first_seen: {{ Metric('first_event') }}
-- Column last_seen: {{ Metric('last_event') }}
-- Column first_day: {{ ReportingDate('min_timestamp') }} on which the player was first seen
-- Column last_day: {{ ReportingDate('max_timestamp') }} on which the player was last seen
-- Column bookings: {{ Metric('bookings') }}
SELECT
    game_name,
    gamer_id,
    session_count AS sessions_begun,
    event_count AS events,
    min_timestamp AS first_seen,
    max_timestamp AS last_seen,
    {{ ReportingDate('min_timestamp') }} AS first_day,
    {{ ReportingDate('max_timestamp') }} AS last_day,
    coalesce(CAST(bookings AS double), 0e0) AS bookings
FROM gold.all_players
WHERE event_count > 0
  AND gamer_id IS NOT NULL
