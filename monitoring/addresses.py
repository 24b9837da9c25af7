"""The addresses that alerts and panels link to, with the default ports of the stack."""

GRAFANA = "https://127.0.0.1:3000"
PROMETHEUS = "https://127.0.0.1:9090"
CONSOLES = f"{PROMETHEUS}/consoles"


def runbook_url(alert: str) -> str:
    """The page of an alert's runbook, which Prometheus serves."""
    return f"{CONSOLES}/runbooks/{alert}.html"
