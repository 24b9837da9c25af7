"""Personal data: which fields of an event are personal, whose they are, and how the vault keeps them.

It knows keys, ciphers and the vault; nothing of Kafka or of the meaning of other fields.
"""
