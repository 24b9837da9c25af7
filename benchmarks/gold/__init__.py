"""How fast gold follows silver, beside thirty Spark MERGEs, and with tables up to a hundred times as large.

It knows nothing of how events come into silver.
"""
