{#- Of contracts/metrics.yaml and games.yaml, by `python -m tools.contracts --write`. -#}
{%- macro Metric(name) -%}
{%- set sql = {
  "events": "count(1) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test'))",
  "players": "count(DISTINCT gamer_id) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test'))",
  "sessions": "count(DISTINCT gamer_id || '/' || nullif(session_id, '')) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test'))",
  "sessions_begun": "count(1) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'session_start'))",
  "levels_completed": "count(1) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'level_completed'))",
  "late_events": "count(1) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (ingest_time > date_trunc('hour', event_time) + INTERVAL '240' MINUTE))",
  "first_event": "min(event_time) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test'))",
  "last_event": "max(event_time) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test'))",
  "purchases": "count(1) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'purchase' AND amount IS NOT NULL))",
  "payers": "count(DISTINCT gamer_id) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'purchase' AND amount IS NOT NULL))",
  "bookings": "sum(CAST(amount AS DECIMAL(18, 6))) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'purchase' AND amount IS NOT NULL))",
  "sales": "count(1) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND ((event_name = 'purchase' AND (price_micros BETWEEN 0 AND 1000000000000000 OR amount IS NOT NULL)) OR (event_name IN ('subscription_started', 'subscription_renewed') AND price_micros BETWEEN 1 AND 1000000000000000)))",
  "gross_sales": "sum(CASE WHEN price_micros BETWEEN 0 AND 1000000000000000 THEN CAST(price_micros AS DECIMAL(20, 0)) * 0.000001 ELSE CAST(amount AS DECIMAL(18, 6)) END) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND ((event_name = 'purchase' AND (price_micros BETWEEN 0 AND 1000000000000000 OR amount IS NOT NULL)) OR (event_name IN ('subscription_started', 'subscription_renewed') AND price_micros BETWEEN 1 AND 1000000000000000)))",
  "refunds": "count(1) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'refund' AND price_micros BETWEEN 0 AND 1000000000000000))",
  "refunded": "sum(CASE WHEN price_micros BETWEEN 0 AND 1000000000000000 THEN CAST(price_micros AS DECIMAL(20, 0)) * 0.000001 ELSE CAST(amount AS DECIMAL(18, 6)) END) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'refund' AND price_micros BETWEEN 0 AND 1000000000000000))",
  "first_sale": "min(event_time) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND ((event_name = 'purchase' AND (price_micros BETWEEN 0 AND 1000000000000000 OR amount IS NOT NULL)) OR (event_name IN ('subscription_started', 'subscription_renewed') AND price_micros BETWEEN 1 AND 1000000000000000)))",
  "first_refund": "min(event_time) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'refund' AND price_micros BETWEEN 0 AND 1000000000000000))",
  "paid_ads": "count(1) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'ad_viewed' AND price_micros BETWEEN 0 AND 1000000000000000))",
  "ad_revenue": "sum(CASE WHEN price_micros BETWEEN 0 AND 1000000000000000 THEN CAST(price_micros AS DECIMAL(20, 0)) * 0.000001 ELSE CAST(amount AS DECIMAL(18, 6)) END) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'ad_viewed' AND price_micros BETWEEN 0 AND 1000000000000000))",
  "median_purchase": "median(amount) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'purchase' AND amount IS NOT NULL))",
  "conversion": "CAST(count(DISTINCT gamer_id) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'purchase' AND amount IS NOT NULL)) AS DOUBLE) / nullif(count(DISTINCT gamer_id) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test')), 0)",
  "arpdau": "CAST(sum(CAST(amount AS DECIMAL(18, 6))) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'purchase' AND amount IS NOT NULL)) AS DOUBLE) / nullif(count(DISTINCT gamer_id) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test')), 0)",
  "arppu": "CAST(sum(CAST(amount AS DECIMAL(18, 6))) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'purchase' AND amount IS NOT NULL)) AS DOUBLE) / nullif(count(DISTINCT gamer_id) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test') AND (event_name = 'purchase' AND amount IS NOT NULL)), 0)"
} -%}
{{ sql.get(name) or exceptions.raise_compiler_error(name ~ " is not in contracts/metrics.yaml") }}
{%- endmacro -%}
{%- macro Dimension(name) -%}
{%- set sql = {
  "event__event_date": "event_date",
  "event__game_name": "game_name",
  "event__platform": "platform",
  "event__app_version": "app_version",
  "event__is_game_event": "(event_name IS DISTINCT FROM 'smoke_test')",
  "event__is_session_start": "(event_name = 'session_start')",
  "event__is_level_completed": "(event_name = 'level_completed')",
  "event__is_purchase": "(event_name = 'purchase' AND amount IS NOT NULL)",
  "event__is_sale": "((event_name = 'purchase' AND (price_micros BETWEEN 0 AND 1000000000000000 OR amount IS NOT NULL)) OR (event_name IN ('subscription_started', 'subscription_renewed') AND price_micros BETWEEN 1 AND 1000000000000000))",
  "event__is_refund": "(event_name = 'refund' AND price_micros BETWEEN 0 AND 1000000000000000)",
  "event__is_paid_ad": "(event_name = 'ad_viewed' AND price_micros BETWEEN 0 AND 1000000000000000)",
  "event__is_late": "(ingest_time > date_trunc('hour', event_time) + INTERVAL '240' MINUTE)"
} -%}
{{ sql.get(name) or exceptions.raise_compiler_error(name ~ " is not in contracts/metrics.yaml") }}
{%- endmacro -%}
{%- macro ReportingDate() -%}
CASE WHEN game_name IN ('Jewel Cascade') THEN CAST(event_time AT TIME ZONE 'America/New_York' AS date) WHEN game_name IN ('Neon Runner') THEN CAST(event_time AT TIME ZONE 'Asia/Tokyo' AS date) ELSE event_date END
{%- endmacro -%}
