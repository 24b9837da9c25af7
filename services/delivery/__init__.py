"""The delivery service: copies the topic of events into compressed files, bounded in size and time."""
