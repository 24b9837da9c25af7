"""The state of each player: updates from new events, its files, and its table."""
