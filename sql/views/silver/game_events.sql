-- What happened in the games: events without the platform's own tests.
-- Grain: one row per event.
-- Column event_date: {{ Dimension('event__event_date') }}; a condition on it decides which files are read
-- Column reporting_date: {{ ReportingDate('event_time') }}, by which gold counts; at most a day from event_date
-- Column event_time: when it happened
-- Column event_name: what happened
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column gamer_id: the player's pseudonym
-- Column session_id: the session
-- Column platform: {{ Dimension('event__platform') }}
-- Column app_version: {{ Dimension('event__app_version') }}
-- Column amount: the price paid, in US dollars
-- Column ingest_time: when the platform received it; null where that is not known
-- Column event_id: the id of the event
SELECT
    event_date,
    {{ ReportingDate('event_time') }} AS reporting_date,
    event_time,
    event_name,
    game_name,
    gamer_id,
    session_id,
    platform,
    app_version,
    amount,
    ingest_time,
    event_id
FROM silver.events
WHERE {{ Dimension('event__is_game_event') }}
