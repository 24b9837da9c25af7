"""Recoveries, practised on the running stack: something is broken on purpose, put right, and timed.

It knows the stack from the desk's side and the gateway as a game does; nothing of how a service works inside.
"""
