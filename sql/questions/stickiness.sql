-- On how many of 30 days does a monthly active player play?
-- Grain: one row per game_name, over the 30 days that end with today.
-- Asked by: analyst.
-- For: product manager.
-- Stickiness is the mean of the daily players (DAU) over the month's players (MAU); today is incomplete. The month's
-- players are those who were last seen in it.
WITH daily AS (
    SELECT
        game_name,
        count(*) / 30e0 AS players
    FROM gold.player_days
    WHERE event_date > current_date - INTERVAL '30' DAY
    GROUP BY game_name
),
monthly AS (
    SELECT
        game_name,
        count(*) AS players
    FROM gold.players
    WHERE last_day > current_date - INTERVAL '30' DAY
    GROUP BY game_name
)
SELECT
    daily.game_name,
    round(daily.players, 2) AS daily_players,
    monthly.players AS monthly_players,
    round(daily.players / monthly.players, 4) AS stickiness
FROM daily
JOIN monthly
    ON monthly.game_name = daily.game_name
ORDER BY stickiness DESC, daily.game_name
