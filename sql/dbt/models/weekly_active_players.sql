WITH played AS (
    SELECT
        *,
        {{ ReportingDate() }} AS reporting_date
    FROM {{ source('silver', 'events') }}
)

SELECT
    days.event_date,
    days.game_name,
    {{ Metric('players') }} AS players
FROM {{ ref('daily_games') }} AS days
INNER JOIN played
    ON
        days.game_name = played.game_name
        AND played.reporting_date BETWEEN days.event_date - INTERVAL 6 DAY AND days.event_date
GROUP BY days.event_date, days.game_name
