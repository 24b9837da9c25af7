"""Key performance indicators by game and day, computed from gold's tables."""
