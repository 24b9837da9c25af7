"""Where personal data is kept, encrypted: players, their keys, and what belongs to them.

It knows ciphers and databases; nothing of events, of HTTP, or of tables.
"""
