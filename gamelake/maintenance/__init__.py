"""Upkeep of a lakehouse: checking that its books balance, and putting right what a crash or a mistake has left.

It reads what the streams wrote down, and never imports a stream's own code.
"""
