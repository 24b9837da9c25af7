"""From the bytes of a Kafka value to Arrow columns: framing, schemas, decoding.

It knows nothing of games and tables; whatever it can't read comes back with a reason instead of an exception.
"""
