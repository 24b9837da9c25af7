SELECT
    days.event_date,
    days.game_name,
    {{ Metric('players') }} AS players
FROM {{ ref('daily_games') }} AS days
INNER JOIN {{ source('silver', 'events') }} AS events
    ON
        days.game_name = events.game_name
        AND events.event_date BETWEEN days.event_date - INTERVAL 6 DAY AND days.event_date
GROUP BY days.event_date, days.game_name
