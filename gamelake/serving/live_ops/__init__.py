"""Live operations: each player's state, and signals about drops and surges in a game's events."""
