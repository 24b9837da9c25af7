"""The second way in: files of events that notifications name, read into the tables that Kafka's events are in.

Nothing lists the bucket and nothing keeps a list by hand: the offsets of the notifications are the state.
"""
