-- Do the players of one game who are shown the new offer pay more?
-- Grain: one row per group of the experiment, over the last 30 days.
-- Asked by: analyst.
-- For: analyst.
-- A player whose events name the experiment is in its group; events of old versions of the game name none.
WITH player AS (
    SELECT
        gamer_id,
        CASE
            WHEN count(*) FILTER (WHERE contains(experiment_ids, 'offer_b')) > 0 THEN 'offer_b'
            ELSE 'control'
        END AS test_group,
        coalesce(sum(amount) FILTER (WHERE event_name = 'purchase'), 0e0) AS bookings
    FROM silver.kart_rumble_events
    WHERE event_date >= current_date - INTERVAL '30' DAY
      AND event_name IS DISTINCT FROM 'smoke_test'
    GROUP BY gamer_id
)
SELECT
    test_group,
    count(*) AS players,
    count(*) FILTER (WHERE bookings > 0) AS payers,
    round(1e0 * count(*) FILTER (WHERE bookings > 0) / count(*), 4) AS paying_share,
    round(sum(bookings) / count(*), 4) AS bookings_per_player
FROM player
GROUP BY test_group
ORDER BY test_group
