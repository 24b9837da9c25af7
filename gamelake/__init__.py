"""The library: what an event means and how it moves from Kafka into Delta tables.

It knows nothing of the programs that call it (`jobs`, `services`, `tools`) and nothing of how they are deployed.
"""
