-- The players' sessions, of all games.
-- Grain: one row per game_name, session_id and event_date; a session that crosses midnight has a row on both days.
-- Column event_date: the day in UTC; a condition on it decides which files are read
-- Column game_name: the title, as the game spells it
-- Column session_id: the session
-- Column gamer_id: the player's pseudonym
-- Column platform: the device's platform
-- Column app_version: the game's version
-- Column began: the session's first event of the day
-- Column ended: the session's last event of the day
-- Column minutes: from the first event to the last one; 0 for a single event
-- Column events: number of events
-- Column levels_completed: levels that were completed
-- Column purchases: purchases with an amount
-- Column bookings: what they amount to, in US dollars
SELECT
    event_date,
    game_name,
    session_id,
    gamer_id,
    platform,
    app_version,
    began,
    ended,
    date_diff('second', began, ended) / 60e0 AS minutes,
    event_count AS events,
    levels_completed,
    purchase_count AS purchases,
    coalesce(CAST(bookings AS double), 0e0) AS bookings
FROM gold.all_sessions
WHERE event_count > 0
  AND session_id IS NOT NULL
