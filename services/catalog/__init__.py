"""Follows the lakehouse's commits: names new tables to Trino, keeps its views, and measures all tables for Prometheus.

It writes no table, reads no row, and knows neither Spark nor what the columns mean.
"""
