-- Each game's day in figures.
-- Grain: one row per event_date and game_name with events; those without a known player count for purchases and bookings.
-- Column event_date: {{ ReportingDate('event_time') }}
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column players: {{ Metric('players') }} (DAU)
-- Column payers: {{ Metric('payers') }}
-- Column sessions: {{ Metric('sessions') }}
-- Column purchases: {{ Metric('purchases') }}
-- Column bookings: {{ Metric('bookings') }}
-- Column arpdau: {{ Metric('arpdau') }}
WITH played AS (
    SELECT
        event_date,
        game_name,
        count(*) AS sessions
    FROM gold.sessions
    GROUP BY event_date, game_name
),
days AS (
    SELECT
        event_date,
        game_name,
        count(gamer_id) AS players,
        count(gamer_id) FILTER (WHERE purchase_count > 0) AS payers,
        sum(purchase_count) AS purchases,
        coalesce(CAST(sum(bookings) AS double), 0e0) AS bookings
    FROM gold.all_player_days
    WHERE event_count > 0
    GROUP BY event_date, game_name
)
SELECT
    days.event_date,
    days.game_name,
    days.players,
    days.payers,
    coalesce(played.sessions, 0) AS sessions,
    days.purchases,
    days.bookings,
    days.bookings / nullif(days.players, 0) AS arpdau
FROM days
LEFT JOIN played
    ON days.event_date = played.event_date
    AND days.game_name = played.game_name
