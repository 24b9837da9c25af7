-- Concurrent players (CCU): those with a session that has begun and not ended, minute by minute.
-- Grain: one row per event_date, game_name and minute in which the number changes; it holds until the next row.
-- Column event_date: {{ Dimension('event__event_date') }}; a condition on it decides which files are read
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column minute: the beginning of the minute
-- Column next_minute: the minute of the game's next row on the day; null for the last row, whose number is 0
-- Column players: players with a session whose first event is in this minute or earlier, and whose last is in this minute or later
WITH minutes AS (
    SELECT
        event_date,
        game_name,
        gamer_id,
        date_trunc('minute', began) AS first_minute,
        date_trunc('minute', ended) AS last_minute
    FROM gold.sessions
),
ordered AS (
    SELECT
        event_date,
        game_name,
        gamer_id,
        first_minute,
        last_minute,
        max(last_minute) OVER (
            PARTITION BY event_date, game_name, gamer_id ORDER BY first_minute, last_minute
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS minute_before
    FROM minutes
),
apart AS (
    -- What earlier sessions of the player do not cover: a player of two sessions at a time counts once.
    SELECT
        event_date,
        game_name,
        CASE WHEN minute_before >= first_minute THEN minute_before + INTERVAL '1' MINUTE ELSE first_minute END AS first_minute,
        last_minute
    FROM ordered
    WHERE minute_before IS NULL
       OR minute_before < last_minute
),
steps AS (
    SELECT event_date, game_name, first_minute AS minute, 1 AS step FROM apart
    UNION ALL
    SELECT event_date, game_name, last_minute + INTERVAL '1' MINUTE AS minute, -1 AS step FROM apart
),
changes AS (
    SELECT
        event_date,
        game_name,
        minute,
        sum(step) AS change
    FROM steps
    GROUP BY event_date, game_name, minute
    HAVING sum(step) <> 0
)
SELECT
    event_date,
    game_name,
    minute,
    lead(minute) OVER (PARTITION BY event_date, game_name ORDER BY minute) AS next_minute,
    sum(change) OVER (
        PARTITION BY event_date, game_name ORDER BY minute ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS players
FROM changes
