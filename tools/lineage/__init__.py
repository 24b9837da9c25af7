"""Draws a lakehouse's lineage as one page that needs nothing else.

It knows what was recorded; nothing of the jobs that told it, of Spark, or of how events are sent.
"""
