SELECT
    {{ ReportingDate() }} AS event_date,
    game_name,
    {{ Metric('players') }} AS players,
    {{ Metric('events') }} AS events
FROM {{ source('silver', 'events') }}
WHERE {{ Dimension('event__is_game_event') }}
GROUP BY {{ ReportingDate() }}, game_name
