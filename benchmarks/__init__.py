"""Each figure that the README states, measured beside the ways of doing it that it is compared with.

Only here is Spark used as a text book would; nothing else of the repository may import it.
"""
