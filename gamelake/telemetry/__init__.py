"""The stream's own telemetry: metrics, lag and heartbeat of a running query, for Prometheus and for health checks.

It knows manifests and Kafka's offsets, and nothing of how batches are made; no failure of it may reach the stream.
"""
