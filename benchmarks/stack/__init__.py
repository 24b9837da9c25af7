"""Benchmarks of the running stack: the sustained rate, and the delay until Trino returns an event.

It uses the stack's published ports and docker compose.
"""
