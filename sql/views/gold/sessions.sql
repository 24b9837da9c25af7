-- The players' sessions, of all games.
-- Grain: one row per event_date, game_name, gamer_id and session_id; a session that crosses midnight has a row on both days.
-- Column event_date: {{ ReportingDate('event_time') }}; a condition on it decides which files are read
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column session_id: the session
-- Column gamer_id: the player's pseudonym
-- Column platform: {{ Dimension('event__platform') }}
-- Column app_version: {{ Dimension('event__app_version') }}
-- Column version_order: orders versions: 1.9 before 1.10, a pre-release before its release
-- Column began: {{ Metric('first_event') }}
-- Column ended: {{ Metric('last_event') }}
-- Column minutes: from the first event to the last one; 0 for a single event
-- Column events: {{ Metric('events') }}
-- Column levels_completed: {{ Metric('levels_completed') }}
-- Column purchases: {{ Metric('purchases') }}
-- Column bookings: {{ Metric('bookings') }}
SELECT
    event_date,
    game_name,
    session_id,
    gamer_id,
    platform,
    app_version,
    regexp_replace(regexp_replace(app_version, '([0-9]+)', '0000000000$1'), '0*([0-9]{10})', '$1') || '.' AS version_order,
    began,
    ended,
    date_diff('second', began, ended) / 60e0 AS minutes,
    event_count AS events,
    levels_completed,
    purchase_count AS purchases,
    coalesce(CAST(bookings AS double), 0e0) AS bookings
FROM gold.all_sessions
WHERE event_count > 0
  AND gamer_id IS NOT NULL
  AND session_id <> ''
