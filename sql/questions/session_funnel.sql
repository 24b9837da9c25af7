-- How far do sessions get: to a level, to its end, to a purchase?
-- Grain: one row per game_name, over the last 7 days.
-- Asked by: analyst.
-- Each step counts the sessions that got at least that far, in any order.
SELECT
    game_name,
    count(*) AS sessions,
    count(*) FILTER (WHERE events > 2) AS played_on,
    count(*) FILTER (WHERE levels_completed > 0) AS completed_a_level,
    count(*) FILTER (WHERE levels_completed > 0 AND purchases > 0) AS completed_and_bought,
    round(1e0 * count(*) FILTER (WHERE levels_completed > 0) / count(*), 4) AS completing_share,
    round(1e0 * count(*) FILTER (WHERE levels_completed > 0 AND purchases > 0) / count(*), 4) AS buying_share
FROM gold.sessions
WHERE event_date >= current_date - INTERVAL '7' DAY
GROUP BY game_name
ORDER BY game_name
