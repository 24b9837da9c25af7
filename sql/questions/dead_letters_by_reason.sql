-- Which records became no row, and why?
-- Grain: one row per ingest_date and reason, of the last 14 days.
-- Asked by: engineer; an analyst has no right to read undecodable records.
-- For: operator.
SELECT
    ingest_date,
    reason,
    count(*) AS records,
    max_by(detail, kafka_timestamp) AS latest_detail,
    max(kafka_timestamp) AS latest
FROM dead_letters.events
WHERE ingest_date >= current_date - INTERVAL '14' DAY
GROUP BY ingest_date, reason
ORDER BY ingest_date, records DESC, reason
