"""Signals about drops and surges: counts per minute, expected values, and judgements."""
