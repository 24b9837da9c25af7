"""Suites of expectations about a past day, validated by Great Expectations on Spark and shown as its Data Docs.

Only this package uses Great Expectations. Its expectations come from other modules of `gamelake.quality`: the rules of
`quality/rules`, and the checks of `gamelake.quality.table_checks`.
"""
