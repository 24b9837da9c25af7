"""One event's whole way through the running stack, told step by step with times.

It knows the platform's outsides only (the gateway, the topic's ends, manifests, table logs, SQL), and nothing
of how a batch is made.
"""
