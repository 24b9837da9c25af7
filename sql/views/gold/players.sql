-- All players of all time, of all games.
-- Grain: one row per game_name and gamer_id.
-- Column game_name: the title
-- Column gamer_id: the player's pseudonym; the same for one player of one game
-- Column sessions: sessions that the player began
-- Column events: events of the player
-- Column first_seen: the player's first event
-- Column last_seen: the player's latest event
-- Column bookings: all that the player has paid, in US dollars
SELECT
    game_name,
    gamer_id,
    session_count AS sessions,
    event_count AS events,
    min_timestamp AS first_seen,
    max_timestamp AS last_seen,
    coalesce(CAST(bookings AS double), 0e0) AS bookings
FROM gold.all_players
WHERE event_count > 0
  AND gamer_id IS NOT NULL
