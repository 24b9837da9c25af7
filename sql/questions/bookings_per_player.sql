-- How much does a day's player spend (ARPDAU), and how much a day's payer (ARPPU)?
-- Grain: one row per event_date and game_name, of the last 14 days.
-- Asked by: analyst.
-- For: product manager.
SELECT
    event_date,
    game_name,
    players,
    payers,
    round(bookings, 2) AS bookings,
    round(arpdau, 4) AS arpdau,
    round(bookings / nullif(payers, 0), 2) AS arppu
FROM gold.players_per_day
WHERE event_date >= current_date - INTERVAL '14' DAY
ORDER BY event_date, game_name
