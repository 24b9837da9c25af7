-- The players of each day, of all games.
-- Grain: one row per event_date, game_name and gamer_id that played on it.
-- Column event_date: the day in UTC
-- Column game_name: the title
-- Column gamer_id: the player's pseudonym; the same for one player of one game
-- Column sessions: sessions that the player began on the day
-- Column events: events of the player on the day
-- Column purchases: purchases with an amount
-- Column bookings: what they amount to, in US dollars
SELECT
    event_date,
    game_name,
    gamer_id,
    session_count AS sessions,
    event_count AS events,
    purchase_count AS purchases,
    coalesce(CAST(bookings AS double), 0e0) AS bookings
FROM gold.all_player_days
WHERE event_count > 0
  AND gamer_id IS NOT NULL
