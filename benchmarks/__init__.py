"""Benchmarks: measures each figure in the documents, together with the alternatives that it is compared with.

Only benchmarks use Spark as in its guides; no other package may import them.
"""
