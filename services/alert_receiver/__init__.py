"""Writes what Alertmanager tells into a file, so that there is a receiver where nobody has a pager.

It knows Alertmanager's webhook and one file; nothing of which alerts there are, nor of the platform that raises them.
"""
