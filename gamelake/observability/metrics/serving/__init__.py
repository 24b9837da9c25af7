"""Metrics of serving: gold, the KPIs, segments and experiments, and live operations."""
