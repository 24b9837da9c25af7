"""Metrics, lineage, health checks: what observes the others."""
