-- What players bought, of all games.
-- Grain: one row per purchase with an amount.
-- Column event_date: {{ Dimension('event__event_date') }}; a condition on it decides which files are read
-- Column reporting_date: {{ ReportingDate('event_time') }}, by which gold counts; at most a day from event_date
-- Column event_time: when it was bought
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column gamer_id: the buyer's pseudonym
-- Column session_id: the session
-- Column platform: {{ Dimension('event__platform') }}
-- Column app_version: {{ Dimension('event__app_version') }}
-- Column amount: the price paid, in US dollars
-- Column event_id: the id of the purchase event
SELECT
    event_date,
    {{ ReportingDate('event_time') }} AS reporting_date,
    event_time,
    game_name,
    gamer_id,
    session_id,
    platform,
    app_version,
    amount,
    event_id
FROM silver.events
WHERE {{ Dimension('event__is_purchase') }}
