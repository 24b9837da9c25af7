"""The dashboards as Prometheus console pages, without Grafana: `python -m monitoring.consoles`."""
