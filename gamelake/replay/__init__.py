"""Records that are in the lakehouse already, decoded once more: dead letters, and bronze where silver lacks its rows.

It must not know Kafka: whatever it reads, the tables hold.
"""
