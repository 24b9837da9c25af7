"""Files of events as a source of the micro-batch engine: notifications, reading, deduplication."""
