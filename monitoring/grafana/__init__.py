"""The dashboards as code; `python -m monitoring.grafana` writes the JSON that Grafana reads."""

import warnings

with warnings.catch_warnings():
    # The SDK prefers Grafana's new dashboard model, which Grafana's file provider can't read: decision 0075.
    warnings.simplefilter("ignore", DeprecationWarning)
    # Only the first import of either model warns.
    import grafana_foundation_sdk.builders.dashboard
    import grafana_foundation_sdk.models.dashboardv2beta1  # noqa: F401 - for the warning alone
