"""Draws the lineage of a lakehouse as one self-contained HTML page.

It reads recorded lineage events, and does not know jobs, Spark, or how the events are emitted.
"""
