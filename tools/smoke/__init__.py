"""Smoke test: sends one event through the running stack to Trino, and reports each step with its time.

It uses interfaces only (gateway, the topic's end offsets, manifests, table logs, SQL), and does not know how a batch
is made.
"""
