-- How many players are new, and what share of a day's players are they?
-- Grain: one row per event_date and game_name with players, of the last 14 days.
-- Asked by: analyst.
-- For: product manager.
WITH newcomers AS (
    SELECT
        first_day AS event_date,
        game_name,
        count(*) AS players
    FROM gold.players
    WHERE first_day >= current_date - INTERVAL '14' DAY
    GROUP BY first_day, game_name
)
SELECT
    day.event_date,
    day.game_name,
    day.players,
    coalesce(newcomers.players, 0) AS new_players,
    round(1e0 * coalesce(newcomers.players, 0) / day.players, 4) AS new_share
FROM gold.players_per_day AS day
LEFT JOIN newcomers
    ON newcomers.event_date = day.event_date
    AND newcomers.game_name = day.game_name
WHERE day.event_date >= current_date - INTERVAL '14' DAY
  AND day.players > 0
ORDER BY day.event_date, day.game_name
