-- What does a new player cost, by the source that brought the player?
-- Grain: one row per game_name and source, of the last 30 days.
-- Asked by: analyst.
-- For: product manager.
-- A source without imported costs has the cost 0. Days without an exchange rate count installs but no cost.
SELECT
    game_name,
    source,
    sum(installs) AS installs,
    round(sum(cost), 2) AS cost,
    round(sum(cost) / nullif(sum(installs), 0), 4) AS cost_per_install
FROM gold.acquisition
WHERE event_date >= current_date - INTERVAL '30' DAY
GROUP BY game_name, source
ORDER BY game_name, source
