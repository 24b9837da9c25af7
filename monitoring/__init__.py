"""What watches the platform: metrics, alerts, runbooks and dashboards, most of them data.

It reads nothing but what Prometheus has, and knows neither the library nor the programs.
"""
