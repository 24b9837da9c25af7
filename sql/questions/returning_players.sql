-- How many of a day's players are back on the day after?
-- Grain: one row per event_date and game_name, of the last 7 days without today, which is not over.
-- Asked by: analyst.
-- For: analyst.
-- The share of yesterday's players who are back is provisional: the day after is today.
WITH active AS (
    SELECT event_date, game_name, gamer_id
    FROM gold.player_days
    WHERE event_date >= current_date - INTERVAL '7' DAY
)
SELECT
    today.event_date,
    today.game_name,
    count(*) AS players,
    count(tomorrow.gamer_id) AS back_on_the_day_after,
    round(1e0 * count(tomorrow.gamer_id) / count(*), 4) AS share,
    today.event_date >= current_date - INTERVAL '1' DAY AS is_provisional
FROM active AS today
LEFT JOIN active AS tomorrow
    ON tomorrow.game_name = today.game_name
    AND tomorrow.gamer_id = today.gamer_id
    AND tomorrow.event_date = date_add('day', 1, today.event_date)
WHERE today.event_date < current_date
GROUP BY today.event_date, today.game_name
ORDER BY today.event_date, today.game_name
