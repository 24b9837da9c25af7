"""The gateway: takes batches of events over HTTP and answers when Kafka has them.

It knows the event contract, the games' keys and one topic; nothing of tables, of Spark, or of who reads what it sends.
"""
