"""Copies the topic of events into files: buffered by size and time, compressed, under dated names."""
