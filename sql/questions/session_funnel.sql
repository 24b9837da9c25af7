-- How far do sessions get: to a level, to its end, to a purchase?
-- Grain: one row per game_name, over the last 7 days.
-- Asked by: analyst.
-- For: analyst.
-- Each step counts the sessions that got at least that far, in any order. One that crosses midnight counts once.
WITH session AS (
    SELECT
        game_name,
        min(event_date) AS first_day,
        sum(events) AS events,
        sum(levels_completed) AS levels_completed,
        sum(purchases) AS purchases
    FROM gold.sessions
    WHERE event_date >= current_date - INTERVAL '8' DAY
    GROUP BY game_name, gamer_id, session_id
)
SELECT
    game_name,
    count(*) AS sessions,
    count(*) FILTER (WHERE events > 2) AS played_on,
    count(*) FILTER (WHERE levels_completed > 0) AS completed_a_level,
    count(*) FILTER (WHERE levels_completed > 0 AND purchases > 0) AS completed_and_bought,
    round(1e0 * count(*) FILTER (WHERE levels_completed > 0) / count(*), 4) AS completing_share,
    round(1e0 * count(*) FILTER (WHERE levels_completed > 0 AND purchases > 0) / count(*), 4) AS buying_share
FROM session
WHERE first_day >= current_date - INTERVAL '7' DAY
GROUP BY game_name
ORDER BY game_name
