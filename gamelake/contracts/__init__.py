"""What crosses a boundary, read from the files under `contracts/` into frozen types.

It knows nothing of Kafka, Spark or tables: a contract can be checked with nothing running.
"""
