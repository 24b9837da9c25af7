"""The vault: players' keys and personal data, in SQLite or PostgreSQL, encrypted."""
