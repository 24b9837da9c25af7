-- Return on ad spend: what the players of a first day and source have paid per dollar of their cost.
-- Grain: one row per event_date, game_name, cohort_date and source, of first days with a cost of the source.
-- Column event_date: the day in the game's time zone; a condition on it decides which files are read
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column cohort_date: the day that the players were first seen on
-- Column source: the network or store that brought them
-- Column day: days from cohort_date to event_date: 0 to 30, 60, 90, 180 or 365
-- Column installs: players of the cohort and source
-- Column revenue: what they paid from cohort_date to event_date, in US dollars, with tax and the store's fee
-- Column cost: what was spent on cohort_date for the source, in US dollars
-- Column roas: revenue divided by cost
-- Column provisional_until: late events are expected until this moment
SELECT
    cells.event_date,
    cells.game_name,
    cells.cohort_date,
    cells.value AS source,
    cells.day,
    cells.new_players AS installs,
    CAST(cells.cumulative_bookings AS double) AS revenue,
    spent.cost,
    CAST(cells.cumulative_bookings AS double) / spent.cost AS roas,
    cells.provisional_until
FROM gold.kpi_cohorts_by AS cells
INNER JOIN gold.acquisition AS spent
    ON cells.cohort_date = spent.event_date
    AND cells.game_name = spent.game_name
    AND cells.value = spent.source
WHERE cells.dimension = 'source' AND spent.cost > 0
