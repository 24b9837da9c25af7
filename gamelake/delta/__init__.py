"""Delta tables: their logs, commits and data files, and the protocol that a writer must follow."""
