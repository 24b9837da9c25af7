"""The ingest gateway: takes batches of events over HTTP and acknowledges them once the in-sync replicas have them.

It knows the event contract, the games' keys, the vault and one Kafka topic; nothing of tables, Spark or consumers.
"""
