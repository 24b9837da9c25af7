"""The driver of a stream: it decides each batch, commits it to all tables, and keeps the checkpoint."""
