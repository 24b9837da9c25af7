"""Validation: a day of a lakehouse from end to end, by its rows, its tables, and the hops between them.

It puts together what the layers below know of themselves; it reads no environment and prints nothing.
"""
