-- How much of a game's bookings comes from the 10 % of its payers who pay most?
-- Grain: one row per game_name with a payer, over all time.
-- Asked by: analyst.
-- For: product manager.
-- The tenth is rounded up: of 11 payers it is 2.
WITH payer AS (
    SELECT
        game_name,
        bookings,
        row_number() OVER (PARTITION BY game_name ORDER BY bookings DESC, gamer_id) AS place,
        count(*) OVER (PARTITION BY game_name) AS payers
    FROM gold.players
    WHERE bookings > 0
)
SELECT
    game_name,
    max(payers) AS payers,
    count(*) FILTER (WHERE place <= ceil(payers / 10e0)) AS whales,
    round(sum(bookings), 2) AS bookings,
    round(sum(bookings) FILTER (WHERE place <= ceil(payers / 10e0)), 2) AS bookings_of_whales,
    round(sum(bookings) FILTER (WHERE place <= ceil(payers / 10e0)) / sum(bookings), 4) AS share_of_whales
FROM payer
GROUP BY game_name
ORDER BY game_name
