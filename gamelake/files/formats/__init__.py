"""What files of events may look like; each becomes the values that Kafka would have brought."""
