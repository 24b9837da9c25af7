"""Monitoring: metrics, alerts, runbooks and dashboards, most of them data. It does not import `gamelake`."""
