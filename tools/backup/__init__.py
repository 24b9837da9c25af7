"""Copies of what the tables themselves do not hold: the streams' state, the registry, the vault, the topics.

It knows each of them by the interface that it has for everybody; nothing of what the events mean.
"""
