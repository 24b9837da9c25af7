-- How many players met each variant of each experiment?
-- Grain: one row per game, experiment and variant, over all days.
-- Asked by: analyst.
-- For: analyst.
-- A player who met two variants is in both rows here, and in no row of experiment_results.
SELECT
    game,
    experiment,
    variant,
    count(DISTINCT gamer_id) AS players,
    min(event_date) AS first_day,
    max(event_date) AS last_day
FROM gold.experiment_exposures
GROUP BY game, experiment, variant
ORDER BY game, experiment, variant
