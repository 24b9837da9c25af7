-- Which offer fits how many players of each game?
-- Grain: one row per game_name and offer with players seen in the last 30 days.
-- Asked by: analyst.
-- For: live-ops manager.
-- The first condition that holds for a player decides; offers_to_players.sql lists the players.
WITH player AS (
    SELECT
        game_name,
        gamer_id,
        bookings,
        CASE
            WHEN bookings > 0 AND last_seen < current_date - INTERVAL '7' DAY THEN 'come back: half price'
            WHEN bookings >= 20 THEN 'large bundle'
            WHEN bookings > 0 THEN 'season pass'
            WHEN sessions_begun >= 3 THEN 'starter pack'
            ELSE 'none yet'
        END AS offer
    FROM gold.players
    WHERE last_seen >= current_date - INTERVAL '30' DAY
)
SELECT
    game_name,
    offer,
    count(*) AS players,
    round(sum(bookings), 2) AS bookings
FROM player
GROUP BY game_name, offer
ORDER BY game_name, offer
