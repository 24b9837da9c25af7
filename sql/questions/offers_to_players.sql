-- Which payers have been away for a week or more, and are worth an offer to come back?
-- Grain: one row per game_name and gamer_id, the 100 who paid most of those seen in the last 30 days.
-- Asked by: support.
-- For: live-ops manager.
SELECT
    game_name,
    gamer_id,
    round(bookings, 2) AS bookings,
    sessions_begun,
    date_diff('day', CAST(last_seen AS date), current_date) AS days_away
FROM gold.players
WHERE bookings > 0
  AND last_seen >= current_date - INTERVAL '30' DAY
  AND last_seen < current_date - INTERVAL '7' DAY
ORDER BY bookings DESC, game_name, gamer_id
LIMIT 100
