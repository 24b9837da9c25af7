"""Dead letters: records that could not be decoded or routed, whole, with where they stood and why they are here.

It knows nothing of how a record is decoded.
"""
