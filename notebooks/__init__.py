"""Notebooks: one for analysts with SQL, two for engineers with Spark; and the modules that they import.

They know tables by their names. No other package imports them.
"""
