"""Maintenance: compaction, vacuum, log cleanup, and the scheduler that runs them."""
