-- Which sources of a currency or item give far more than usual?
-- Grain: one row per game_name, item and reason that gave more than three times its baseline today or yesterday.
-- Asked by: analyst.
-- For: live-ops manager.
-- The baseline is the median of the days among the 14 before on which the source gave something, at least three of them.
-- Behind the alert EconomySourceUnusual.
WITH gains AS (
    SELECT
        event_date,
        game_name,
        item,
        reason,
        gained
    FROM gold.economy
    WHERE event_date >= current_date - INTERVAL '15' DAY
      AND event_date <= current_date
      AND reason IS NOT NULL
      AND gained > 0
),
pairs AS (
    SELECT
        judged.event_date,
        judged.game_name,
        judged.item,
        judged.reason,
        judged.gained,
        earlier.gained AS earlier_gained,
        row_number() OVER (
            PARTITION BY judged.event_date, judged.game_name, judged.item, judged.reason ORDER BY earlier.gained
        ) AS place,
        count(*) OVER (PARTITION BY judged.event_date, judged.game_name, judged.item, judged.reason) AS days
    FROM gains judged
    JOIN gains earlier
        ON earlier.game_name = judged.game_name
        AND earlier.item = judged.item
        AND earlier.reason = judged.reason
        AND earlier.event_date < judged.event_date
        AND earlier.event_date >= judged.event_date - INTERVAL '14' DAY
    WHERE judged.event_date >= current_date - INTERVAL '1' DAY
)
SELECT
    event_date,
    game_name,
    item,
    reason,
    gained,
    avg(earlier_gained) AS baseline,
    round(gained / avg(earlier_gained), 2) AS times_baseline
FROM pairs
WHERE days >= 3
  AND 2 * place >= days
  AND 2 * place <= days + 2
GROUP BY event_date, game_name, item, reason, gained
HAVING gained > 3 * avg(earlier_gained)
ORDER BY event_date, game_name, item, reason
