"""Writes Alertmanager's notifications into a file: a receiver for a stack without a paging service.

It knows Alertmanager's webhook and one file, not which alerts there are.
"""
