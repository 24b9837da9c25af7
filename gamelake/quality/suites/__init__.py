"""Suites: what must hold of a day that is over, judged by Great Expectations on Spark, and shown as its Data Docs.

Nothing else knows Great Expectations. It knows no stream, and holds no definition of its own: rules are those of
`quality/rules`, figures of tables those of `gamelake.quality.tables`.
"""
