"""Delta transaction logs: the codec of entries, replaying them, checkpoints, and the protocol's features."""
