-- What share of each game's players pays, and how much does a payer spend?
-- Grain: one row per game_name, over all time.
-- Asked by: analyst.
-- For: product manager.
SELECT
    game_name,
    count(*) AS players,
    count(*) FILTER (WHERE bookings > 0) AS payers,
    round(1e0 * count(*) FILTER (WHERE bookings > 0) / count(*), 4) AS paying_share,
    round(sum(bookings) / nullif(count(*) FILTER (WHERE bookings > 0), 0), 2) AS bookings_per_payer
FROM gold.players
GROUP BY game_name
ORDER BY game_name
