"""Experiments: exposures of players, and statistics of each day, metric and variant, computed from silver and gold."""
