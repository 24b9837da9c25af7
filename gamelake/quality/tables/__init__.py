"""Checks over whole tables, for what no single row can show: doubles, volume, references, drift and shifts.

It reads tables and writes one; it knows no stream.
"""
