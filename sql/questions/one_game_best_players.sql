-- Who are the best customers of one game?
-- Grain: one row per gamer_id, the 20 who have paid most.
-- Asked by: support.
-- For: live-ops manager.
SELECT
    gamer_id,
    round(CAST(bookings AS double), 2) AS bookings,
    session_count AS sessions,
    event_count AS events,
    date_diff('day', CAST(min_timestamp AS date), CAST(max_timestamp AS date)) AS days_from_first_to_last
FROM gold.kart_rumble_player_agg
WHERE bookings > 0
ORDER BY bookings DESC, gamer_id
LIMIT 20
