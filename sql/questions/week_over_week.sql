-- How does each game's last week compare with the week before it?
-- Grain: one row per game_name, over the 14 days before today.
-- Asked by: analyst.
-- For: product manager.
-- Player-days are the sum of the days' players: a player of three days counts three times.
WITH weeks AS (
    SELECT
        game_name,
        sum(players) FILTER (WHERE event_date >= current_date - INTERVAL '7' DAY) AS player_days,
        sum(players) FILTER (WHERE event_date < current_date - INTERVAL '7' DAY) AS player_days_before,
        sum(bookings) FILTER (WHERE event_date >= current_date - INTERVAL '7' DAY) AS bookings,
        sum(bookings) FILTER (WHERE event_date < current_date - INTERVAL '7' DAY) AS bookings_before
    FROM gold.players_per_day
    WHERE event_date >= current_date - INTERVAL '14' DAY
      AND event_date < current_date
    GROUP BY game_name
)
SELECT
    game_name,
    player_days,
    player_days_before,
    round(1e0 * player_days / nullif(player_days_before, 0) - 1, 4) AS player_days_change,
    round(bookings, 2) AS bookings,
    round(bookings_before, 2) AS bookings_before,
    round(bookings / nullif(bookings_before, 0) - 1, 4) AS bookings_change
FROM weeks
ORDER BY game_name
