SELECT
    event_date,
    game_name,
    count(DISTINCT gamer_id) AS players,
    count(*) AS events
FROM {{ source('silver', 'events') }}
GROUP BY event_date, game_name
