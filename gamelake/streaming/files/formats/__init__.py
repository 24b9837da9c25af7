"""The formats of event files: JSON lines, delimited Protobuf, Parquet."""
