"""Notebooks: one for analysts with SQL, one for engineers with Spark; and the modules that they import.

They know tables by their names. No other package imports them.
"""
