"""Notebooks: one of an analyst over SQL, one of an engineer over Spark, each read from top to bottom.

They know tables by their names; nothing imports them, and what they share stands in modules beside them.
"""
