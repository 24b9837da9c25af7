-- The state of each player from one day to another: a slowly changing dimension of type 2.
-- Grain: one row per game_name, gamer_id and day on which a column changed.
-- Column game_name: {{ Dimension('event__game_name') }}
-- Column gamer_id: the player's pseudonym; the same for one player of one game
-- Column valid_from: the first day of the row, in the game's time zone; in the future if a payer lapses then
-- Column valid_until: the first day of the player's next row; null for the last one
-- Column country: where the player last played, ISO 3166-1 alpha-2; null if it is unknown
-- Column platform: {{ Dimension('event__platform') }}
-- Column first_version: the game's version when the player was first seen
-- Column last_version: the newest of the game's versions on the last day with one
-- Column payer_state: none, first_time (one purchase), repeat, or lapsed (no purchase in 30 days)
WITH days AS (
    SELECT
        event_date,
        game_name,
        gamer_id,
        country,
        platform,
        app_version,
        purchase_count AS purchases
    FROM gold.all_player_days
    WHERE event_count > 0
      AND gamer_id IS NOT NULL
),
buying_days AS (
    SELECT
        game_name,
        gamer_id,
        CAST(event_date + INTERVAL '30' DAY AS date) AS lapses_on,
        lead(event_date) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date) AS next_purchase
    FROM days
    WHERE purchases > 0
),
dated AS (
    SELECT
        event_date,
        game_name,
        gamer_id
    FROM days
    UNION
    -- A payer lapses on a day that may have no event.
    SELECT
        lapses_on AS event_date,
        game_name,
        gamer_id
    FROM buying_days
    WHERE coalesce(next_purchase > lapses_on, TRUE)
),
one_per_day AS (
    SELECT
        dated.event_date,
        dated.game_name,
        dated.gamer_id,
        days.country,
        days.platform,
        days.app_version,
        coalesce(days.purchases, 0) AS purchases
    FROM dated
    LEFT JOIN days
        ON dated.event_date = days.event_date
        AND dated.game_name = days.game_name
        AND dated.gamer_id = days.gamer_id
),
-- A day without a value has the number of the last one that has it.
numbered AS (
    SELECT
        one_per_day.*,
        count(country) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS country_number,
        count(platform) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS platform_number,
        count(app_version) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS version_number
    FROM one_per_day
),
known AS (
    SELECT
        event_date,
        game_name,
        gamer_id,
        max(country) OVER (PARTITION BY game_name, gamer_id, country_number) AS country,
        max(platform) OVER (PARTITION BY game_name, gamer_id, platform_number) AS platform,
        max(CASE WHEN version_number = 1 THEN app_version END) OVER (PARTITION BY game_name, gamer_id) AS first_version,
        max(app_version) OVER (PARTITION BY game_name, gamer_id, version_number) AS last_version,
        sum(purchases) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS purchases,
        max(CASE WHEN purchases > 0 THEN event_date END) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS last_purchase
    FROM numbered
),
described AS (
    SELECT
        event_date,
        game_name,
        gamer_id,
        country,
        platform,
        first_version,
        last_version,
        CASE
            WHEN purchases = 0 THEN 'none'
            WHEN event_date >= last_purchase + INTERVAL '30' DAY THEN 'lapsed'
            WHEN purchases = 1 THEN 'first_time'
            ELSE 'repeat'
        END AS payer_state
    FROM known
),
compared AS (
    SELECT
        described.*,
        lag(country) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date) AS former_country,
        lag(platform) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date) AS former_platform,
        lag(last_version) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date) AS former_version,
        lag(payer_state) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date) AS former_state
    FROM described
),
versions AS (
    SELECT
        game_name,
        gamer_id,
        event_date AS valid_from,
        lead(event_date) OVER (PARTITION BY game_name, gamer_id ORDER BY event_date) AS valid_until,
        country,
        platform,
        first_version,
        last_version,
        payer_state
    FROM compared
    -- The first row has no former state.
    WHERE former_state IS DISTINCT FROM payer_state
       OR former_country IS DISTINCT FROM country
       OR former_platform IS DISTINCT FROM platform
       OR former_version IS DISTINCT FROM last_version
)
SELECT
    game_name,
    gamer_id,
    valid_from,
    valid_until,
    country,
    platform,
    first_version,
    last_version,
    payer_state
FROM versions
