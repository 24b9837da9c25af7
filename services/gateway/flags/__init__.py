"""Assignments of players to the variants of experiments, by OpenFeature's remote evaluation protocol (OFREP)."""
