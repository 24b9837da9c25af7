"""Thin programs for spark-submit: read settings, build a session, name source and sink, run."""
