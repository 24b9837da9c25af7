"""Deduplication: events that came before, in the same stream, in another one, or by a replay."""
