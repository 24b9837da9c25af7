"""Metrics of serving: of gold, of what derives from it, and of live operations."""
