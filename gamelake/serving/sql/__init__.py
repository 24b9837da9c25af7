"""SQL over the tables: views, worked questions, dialects of Trino, Spark and DuckDB."""
