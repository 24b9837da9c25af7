"""What live operations act on: each player's state for offers, and signals about games that are not as they should be.

It knows nothing of the tables that the fan-out writes, nor of who measures it.
"""
