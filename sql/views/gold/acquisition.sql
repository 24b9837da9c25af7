-- What new players cost, by the source that brought them.
-- Grain: one row per event_date, game_name and source with new players or a cost.
-- Column event_date: the day in the game's time zone
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column source: the network or store that brought the players; unknown; other beyond the 20 largest of the day
-- Column installs: players who were first seen on the day
-- Column cost: what was spent, in US dollars by the day's rate; null if a currency has no rate
-- Column cpi: cost per install; null without installs
WITH sides AS (
    SELECT
        event_date,
        game_name,
        value AS source,
        new_players AS installs,
        0e0 AS cost,
        0 AS without_rate
    FROM gold.kpi_cohorts_by
    WHERE dimension = 'source' AND day = 0
    UNION ALL
    SELECT
        spent.event_date,
        spent.game_name,
        spent.source,
        0 AS installs,
        coalesce(CAST(spent.cost AS double) * rates.usd, 0e0) AS cost,
        CASE WHEN rates.usd IS NULL THEN 1 ELSE 0 END AS without_rate
    FROM gold.acquisition_cost AS spent
    LEFT JOIN gold.currency_rates AS rates
        ON spent.currency = rates.currency
        AND spent.event_date >= rates.valid_from
        AND spent.event_date < rates.valid_until
)
SELECT
    event_date,
    game_name,
    source,
    sum(installs) AS installs,
    CASE WHEN sum(without_rate) = 0 THEN sum(cost) END AS cost,
    CASE WHEN sum(without_rate) = 0 THEN sum(cost) / nullif(sum(installs), 0) END AS cpi
FROM sides
GROUP BY event_date, game_name, source
