"""Metrics of the running processes, and the HTTP endpoint that Prometheus reads."""
