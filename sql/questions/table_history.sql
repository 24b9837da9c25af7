-- What was done to a table, version by version?
-- Grain: one row per version that the table's log still has, the newest first.
-- Asked by: analyst, of tables that an analyst may read.
-- For: operator.
-- Runs on: Trino.
SELECT
    version,
    timestamp AS committed_at,
    operation,
    is_blind_append AS only_added_rows
FROM silver."events$history"
ORDER BY version DESC
LIMIT 100
