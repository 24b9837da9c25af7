"""The games' SDKs and their players: realistic, reproducible traffic, with a ledger of what was taken.

It knows nothing of the tables that the events end in, and nothing of Spark.
"""
