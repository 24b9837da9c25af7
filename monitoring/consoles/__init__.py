"""The dashboards as pages of Prometheus' own, where there is no Grafana; `python -m monitoring.consoles` writes them.

It knows the dashboards' panels and Prometheus' console templates, and nothing of Grafana.
"""
