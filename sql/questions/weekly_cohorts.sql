-- Which share of a week's new players plays in each of the four weeks after the first day (bounded retention)?
-- Grain: one row per first_week (its Monday) and game_name, of the last 12 weeks.
-- Asked by: analyst.
-- For: product manager.
-- Week 1 is days 1 to 7 of each player, week 2 days 8 to 14. A player counts once per week. A share is null until the week is over for all players of the cohort.
WITH visits AS (
    SELECT
        players.game_name,
        players.gamer_id,
        players.first_day,
        days.event_date,
        date_diff('day', players.first_day, days.event_date) AS day
    FROM gold.players AS players
    INNER JOIN gold.player_days AS days
        ON players.game_name = days.game_name AND players.gamer_id = days.gamer_id
    WHERE players.first_day >= date_trunc('week', current_date - INTERVAL '77' DAY)
      AND days.event_date >= date_trunc('week', current_date - INTERVAL '77' DAY)
),
weeks AS (
    SELECT
        date_trunc('week', first_day) AS first_week,
        date_diff('day', date_trunc('week', first_day), current_date) - 7 AS age,
        game_name,
        count(DISTINCT gamer_id) AS players,
        1e0 * count(DISTINCT gamer_id) FILTER (WHERE day BETWEEN 1 AND 7) AS week_1,
        1e0 * count(DISTINCT gamer_id) FILTER (WHERE day BETWEEN 8 AND 14) AS week_2,
        1e0 * count(DISTINCT gamer_id) FILTER (WHERE day BETWEEN 15 AND 21) AS week_3,
        1e0 * count(DISTINCT gamer_id) FILTER (WHERE day BETWEEN 22 AND 28) AS week_4
    FROM visits
    GROUP BY date_trunc('week', first_day), game_name
)
SELECT
    CAST(first_week AS date) AS first_week,
    game_name,
    players,
    CASE WHEN age >= 7 THEN round(week_1 / players, 4) END AS week_1_share,
    CASE WHEN age >= 14 THEN round(week_2 / players, 4) END AS week_2_share,
    CASE WHEN age >= 21 THEN round(week_3 / players, 4) END AS week_3_share,
    CASE WHEN age >= 28 THEN round(week_4 / players, 4) END AS week_4_share
FROM weeks
ORDER BY first_week, game_name
