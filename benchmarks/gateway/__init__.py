"""Benchmark of the ingest gateway on one core, compared with a peer that does the same work.

It starts both with Kafka and the registry; it knows neither Spark nor tables.
"""
