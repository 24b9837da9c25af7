"""Measures refreshes of gold tables: against thirty Spark MERGEs, and with tables up to a hundred times as large.

It does not use the ingestion of events into silver.
"""
