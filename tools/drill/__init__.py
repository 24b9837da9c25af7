"""Drills: recoveries practised on the running stack. Each one injects a fault, recovers, and is timed.

They use docker compose and the stack's published ports, and do not know how a service works inside.
"""
