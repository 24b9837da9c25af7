"""Measures the worked questions in Trino on the running stack, over a chosen number of events.

It writes its own tables into the stack's lakehouse, and removes them again.
"""
