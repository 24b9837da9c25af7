"""The engines that can run a query. Programs that only name one don't load the translator."""

from enum import StrEnum


class QueryEngine(StrEnum):
    """The engine that runs a query."""

    TRINO = "trino"
    SPARK = "spark"
    DUCKDB = "duckdb"
