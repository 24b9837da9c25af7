"""Players with their segments: declared in SQL, kept as sets of players, and published with each change."""
