-- Which variants are better than the control, and does one of them harm a guardrail?
-- Grain: one row per game, experiment, metric and variant, at the end of the experiment's newest day.
-- Asked by: analyst.
-- For: product manager.
-- The columns low, high and p_value of the table hold on all days together: ask as often as you like.
WITH newest AS (
    SELECT game, experiment, max(event_date) AS event_date
    FROM gold.experiment_results
    GROUP BY game, experiment
)
SELECT
    results.game,
    results.experiment,
    results.variant,
    results.metric,
    results.role,
    results.verdict,
    results.players,
    results.control_players,
    round(results.mean, 4) AS mean,
    round(results.control_mean, 4) AS control_mean
FROM gold.experiment_results AS results
INNER JOIN newest
    ON results.game = newest.game
    AND results.experiment = newest.experiment
    AND results.event_date = newest.event_date
ORDER BY results.game, results.experiment, results.metric, results.variant
