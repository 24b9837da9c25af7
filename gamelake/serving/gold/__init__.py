"""Gold: aggregate tables, refreshed incrementally from silver."""
