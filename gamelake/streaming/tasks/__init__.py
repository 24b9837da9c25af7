"""The tasks of a batch: records are decoded, sorted by table and day, and written as Parquet files."""
