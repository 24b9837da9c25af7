"""Events of many requests at once, as Arrow columns: how a service under load reads, checks and writes them.

What is taken here would be taken event by event too, and becomes the same; it knows neither HTTP, Kafka nor the vault.
"""
