"""Bronze: every record as Kafka delivered it, bad ones included.

It knows nothing of what a record means.
"""
