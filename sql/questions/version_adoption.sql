-- How fast do players move to a new version?
-- Grain: one row per event_date, game_name and app_version, of the last 14 days.
-- Asked by: analyst.
-- Who played two versions on a day counts for both, so that the shares of a day may add up to more than one.
WITH players_of_a_version AS (
    SELECT event_date, game_name, app_version, count(DISTINCT gamer_id) AS players
    FROM silver.events
    WHERE event_date >= current_date - INTERVAL '14' DAY
      AND app_version IS NOT NULL
    GROUP BY event_date, game_name, app_version
),
players_of_a_day AS (
    SELECT event_date, game_name, count(DISTINCT gamer_id) AS players
    FROM silver.events
    WHERE event_date >= current_date - INTERVAL '14' DAY
      AND app_version IS NOT NULL
    GROUP BY event_date, game_name
)
SELECT
    event_date,
    game_name,
    app_version,
    version.players,
    round(1e0 * version.players / day.players, 4) AS share
FROM players_of_a_version AS version
JOIN players_of_a_day AS day USING (event_date, game_name)
ORDER BY event_date, game_name, app_version
