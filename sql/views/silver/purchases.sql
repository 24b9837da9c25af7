-- What players bought, of all games.
-- Grain: one row per purchase with an amount.
-- Column event_date: the day in UTC; a condition on it decides which files are read
-- Column event_time: when it was bought
-- Column game_name: the title, as the game spells it
-- Column gamer_id: the buyer's pseudonym
-- Column session_id: the session
-- Column platform: the device's platform
-- Column app_version: the game's version
-- Column amount: the price paid, in US dollars
-- Column event_id: the id of the purchase event
SELECT
    event_date,
    event_time,
    game_name,
    gamer_id,
    session_id,
    platform,
    app_version,
    amount,
    event_id
FROM silver.events
WHERE event_name = 'purchase'
  AND amount IS NOT NULL
