"""The figures of the running stack: how much it sustains, and how soon an event can be asked for in Trino.

It reaches the stack as a person at the desk does, by published ports and docker compose, and imports no test.
"""
