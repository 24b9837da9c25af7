-- How many of those who first played in a week pay, and how soon?
-- Grain: one row per first_week and game_name, of the weeks that began in the last 45 days.
-- Asked by: analyst.
-- For: analyst.
-- A week is named by its Monday. Players of recent weeks have had less time to pay. A pseudonym belongs to one game, so it
-- identifies a player without the game.
WITH first_purchase AS (
    SELECT
        gamer_id,
        min(event_date) AS first_paid
    FROM gold.player_days
    WHERE event_date >= current_date - INTERVAL '45' DAY
      AND purchases > 0
    GROUP BY gamer_id
),
newcomer AS (
    SELECT
        game_name,
        gamer_id,
        first_day
    FROM gold.players
    WHERE date_trunc('week', first_day) >= current_date - INTERVAL '45' DAY
)
SELECT
    CAST(date_trunc('week', newcomer.first_day) AS date) AS first_week,
    newcomer.game_name,
    count(*) AS players,
    count(*) FILTER (WHERE first_purchase.first_paid = newcomer.first_day) AS paid_on_the_first_day,
    count(*) FILTER (
        WHERE date_diff('day', newcomer.first_day, first_purchase.first_paid) < 7
    ) AS paid_within_a_week,
    count(first_purchase.first_paid) AS paid_by_now,
    round(1e0 * count(first_purchase.first_paid) / count(*), 4) AS conversion
FROM newcomer
LEFT JOIN first_purchase
    ON first_purchase.gamer_id = newcomer.gamer_id
GROUP BY CAST(date_trunc('week', newcomer.first_day) AS date), newcomer.game_name
ORDER BY first_week, newcomer.game_name
