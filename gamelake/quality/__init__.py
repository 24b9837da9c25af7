"""Quality: the rules that rows must hold to, and what becomes of the rows that don't.

It knows nothing of how a record becomes a row, nor where tables stand.
"""
