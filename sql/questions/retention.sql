-- How many of a day's new players play 1, 7 and 30 days later?
-- Grain: one row per first_day and game_name, of the first days of the last 45 days.
-- Asked by: analyst.
-- For: product manager.
-- A share is null until its day is over: the day after yesterday is today. The players of a day that is not over are
-- provisional. A pseudonym belongs to one game, so it
-- identifies a player without the game.
WITH newcomer AS (
    SELECT
        game_name,
        gamer_id,
        CAST(first_seen AS date) AS first_day
    FROM gold.players
    WHERE CAST(first_seen AS date) >= current_date - INTERVAL '45' DAY
),
day_played AS (
    SELECT
        newcomer.first_day,
        newcomer.game_name,
        date_diff('day', newcomer.first_day, active.event_date) AS day_number
    FROM newcomer
    JOIN gold.player_days AS active
        ON active.gamer_id = newcomer.gamer_id
    WHERE active.event_date >= current_date - INTERVAL '45' DAY
      AND date_diff('day', newcomer.first_day, active.event_date) IN (0, 1, 7, 30)
),
cohort AS (
    SELECT
        first_day,
        game_name,
        count(*) FILTER (WHERE day_number = 0) AS players,
        count(*) FILTER (WHERE day_number = 1) AS day_1,
        count(*) FILTER (WHERE day_number = 7) AS day_7,
        count(*) FILTER (WHERE day_number = 30) AS day_30
    FROM day_played
    GROUP BY first_day, game_name
)
SELECT
    first_day,
    game_name,
    players,
    CASE WHEN first_day < current_date - INTERVAL '1' DAY THEN round(1e0 * day_1 / players, 4) END AS day_1_share,
    CASE WHEN first_day < current_date - INTERVAL '7' DAY THEN round(1e0 * day_7 / players, 4) END AS day_7_share,
    CASE WHEN first_day < current_date - INTERVAL '30' DAY THEN round(1e0 * day_30 / players, 4) END AS day_30_share,
    first_day >= current_date AS is_provisional
FROM cohort
ORDER BY first_day, game_name
