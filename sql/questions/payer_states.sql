-- How many players of each game have never bought anything, bought once, bought again, or stopped buying?
-- Grain: one row per game_name and payer_state.
-- Asked by: analyst.
-- For: product manager.
SELECT
    game_name,
    payer_state,
    count(*) AS players
FROM gold.player_history
WHERE valid_from <= current_date
  AND coalesce(valid_until > current_date, TRUE)
GROUP BY game_name, payer_state
ORDER BY game_name, payer_state
