"""How fast the gateway is on one core, beside a peer that does the same work.

It starts what it measures with Kafka and the registry next to it; it knows neither Spark nor tables.
"""
