"""The dashboards as code; `python -m monitoring.grafana` writes the JSON that Grafana reads.

It knows the names of metrics and Grafana's model of a dashboard, and nothing of a running Grafana.
"""

import warnings

with warnings.catch_warnings():
    # The SDK prefers Grafana's new model, which Grafana does not read from files: decision 0018.
    warnings.simplefilter("ignore", DeprecationWarning)
    # The warning comes with the first import of either model only.
    import grafana_foundation_sdk.builders.dashboard
    import grafana_foundation_sdk.models.dashboardv2beta1  # noqa: F401 - for the warning alone
