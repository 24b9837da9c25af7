"""Kafka as the source of a stream: the offsets of a batch, and readers of their records."""
