"""The eight dashboards: each is a list of questions, with the panels that answer them.

They define queries, units and thresholds; `monitoring.grafana.panels` and `drawing` define how a panel is built_panel.
"""

from monitoring.grafana.dashboards.gateway import GATEWAY
from monitoring.grafana.dashboards.kpis import KPIS
from monitoring.grafana.dashboards.lag import LAG
from monitoring.grafana.dashboards.live_ops import LIVE_OPS
from monitoring.grafana.dashboards.maintenance import MAINTENANCE
from monitoring.grafana.dashboards.pipeline import PIPELINE
from monitoring.grafana.dashboards.services import SERVICES
from monitoring.grafana.dashboards.tables import TABLES

PAGES = (KPIS, LIVE_OPS, GATEWAY, LAG, PIPELINE, TABLES, MAINTENANCE, SERVICES)

__all__ = ["GATEWAY", "KPIS", "LAG", "LIVE_OPS", "MAINTENANCE", "PAGES", "PIPELINE", "SERVICES", "TABLES"]
