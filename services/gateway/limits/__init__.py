"""Limits of the gateway: rates, quotas, memory and shares of the event loop."""
