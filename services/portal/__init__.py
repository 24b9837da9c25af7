"""The portal: figures of the games, the worked questions to run, and the state and addresses of the services.

It knows no table; a question is run by Trino as the analyst, or by DuckDB in a process of its own.
"""
