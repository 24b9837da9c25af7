"""The portal: how the games are doing, the worked questions to run, what the platform is doing, and where its parts are.

It knows no table; a question is run by Trino as the analyst, or by DuckDB in a process of its own.
"""
