-- Each game's day in figures.
-- Grain: one row per event_date and game_name with players.
-- Column event_date: the day in UTC
-- Column game_name: the title
-- Column players: different players (DAU)
-- Column payers: different players who bought something
-- Column sessions: sessions that were begun
-- Column purchases: purchases with an amount
-- Column bookings: what they amount to, in US dollars
-- Column arpdau: bookings for each player of the day, in US dollars
SELECT
    event_date,
    game_name,
    count(*) AS players,
    count(*) FILTER (WHERE purchases > 0) AS payers,
    sum(sessions) AS sessions,
    sum(purchases) AS purchases,
    sum(bookings) AS bookings,
    sum(bookings) / count(*) AS arpdau
FROM gold.player_days
GROUP BY event_date, game_name
