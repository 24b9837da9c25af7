"""Personal data: what of an event is personal, whose it is, and where it is kept instead.

It knows keys, ciphers and the vault; nothing of HTTP, of Kafka, or of what the rest of an event means.
"""
