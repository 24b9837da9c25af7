"""Replay, backfill, restore, clone and log repair."""
