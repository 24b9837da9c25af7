"""The addresses that alerts and panels link to, with the default ports of the stack."""

GRAFANA = "https://127.0.0.1:3000"
# The docs site, which the portal serves.
RUNBOOKS = "http://127.0.0.1:8089/documents/monitoring/runbooks"


def runbook_url(alert: str) -> str:
    """Returns the page of an alert's runbook."""
    return f"{RUNBOOKS}/{alert}/"
