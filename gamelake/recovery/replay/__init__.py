"""Replay: dead letters and bronze records, decoded again into silver."""
