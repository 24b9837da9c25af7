"""Silver: one conformed table for each game, and one of the columns that all games share.

It knows what an event's columns mean, and nothing of how they got here or how a table is committed.
"""
