"""The eight dashboards, each a list of questions with the panels that answer them.

They know metrics and what to look at next; how a panel is drawn is not their business.
"""

from monitoring.grafana.dashboards.front_door import FRONT_DOOR
from monitoring.grafana.dashboards.kpis import KPIS
from monitoring.grafana.dashboards.lag import LAG
from monitoring.grafana.dashboards.live_ops import LIVE_OPS
from monitoring.grafana.dashboards.pipeline import PIPELINE
from monitoring.grafana.dashboards.services import SERVICES
from monitoring.grafana.dashboards.tables import TABLES
from monitoring.grafana.dashboards.upkeep import UPKEEP

PAGES = (KPIS, LIVE_OPS, FRONT_DOOR, LAG, PIPELINE, TABLES, UPKEEP, SERVICES)

__all__ = ["FRONT_DOOR", "KPIS", "LAG", "LIVE_OPS", "PAGES", "PIPELINE", "SERVICES", "TABLES", "UPKEEP"]
