"""The games' SDKs and their players: realistic, reproducible traffic for Kafka, with a ledger of what was sent.

It knows nothing of the tables that the events end in, and nothing of Spark.
"""
