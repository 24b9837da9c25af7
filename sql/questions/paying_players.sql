-- What share of each game's players pays, and how much does one of them?
-- Grain: one row per game_name, over the last 30 days.
-- Asked by: analyst.
SELECT
    game_name,
    count(DISTINCT gamer_id) AS players,
    count(DISTINCT gamer_id) FILTER (WHERE event_name = 'purchase' AND amount > 0) AS payers,
    round(
        1e0 * count(DISTINCT gamer_id) FILTER (WHERE event_name = 'purchase' AND amount > 0)
            / count(DISTINCT gamer_id),
        4
    ) AS paying_share,
    round(
        sum(amount) FILTER (WHERE event_name = 'purchase')
            / nullif(count(DISTINCT gamer_id) FILTER (WHERE event_name = 'purchase' AND amount > 0), 0),
        2
    ) AS bookings_per_payer
FROM silver.events
WHERE event_date >= current_date - INTERVAL '30' DAY
  AND event_name <> 'smoke_test'
GROUP BY game_name
HAVING count(DISTINCT gamer_id) > 0
ORDER BY game_name
