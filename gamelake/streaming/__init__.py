"""The micro-batch engine: its driver and tasks, deduplication, and the two sources, Kafka and files."""
