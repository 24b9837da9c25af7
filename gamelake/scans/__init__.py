"""Scans: read the rows of tables as Arrow, in SQL, or by player."""
