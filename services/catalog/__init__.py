"""Catalog service: registers new tables in Trino, maintains Trino's views, and exports table statistics to Prometheus.

It writes no table and reads no row; it does not know Spark or the meaning of columns.
"""
