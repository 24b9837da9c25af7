"""The four dashboards, each a list of questions with the panels that answer them.

They know metrics and what to look at next; how a panel is drawn is not their business.
"""

from monitoring.grafana.dashboards.lag import LAG
from monitoring.grafana.dashboards.pipeline import PIPELINE
from monitoring.grafana.dashboards.services import SERVICES
from monitoring.grafana.dashboards.tables import TABLES

PAGES = (LAG, PIPELINE, TABLES, SERVICES)

__all__ = ["LAG", "PAGES", "PIPELINE", "SERVICES", "TABLES"]
