"""Segments of players: declared in SQL, stored as sets of players, and published at each change."""
