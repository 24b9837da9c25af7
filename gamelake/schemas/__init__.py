"""Schemas: registry client, Confluent framing, Protobuf messages decoded to Arrow."""
