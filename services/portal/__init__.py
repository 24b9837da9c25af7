"""The portal: one page that shows what the platform is doing, where its parts are, and the worked questions to run.

It knows no table; a question is run by Trino as the analyst, or by DuckDB in a process of its own.
"""
