"""A dashboard as data, and as the JSON that Grafana reads from a file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from monitoring.grafana.drawing import SOURCE, built_panel
from monitoring.grafana.panels import FULL_WIDTH, Panel

_TAG = "gamelake"
# Seconds for which a start or a change is marked.
_REMEMBERED = 86_400


class Variable(StrEnum):
    """A dashboard variable; the value is the query for its options."""

    QUERY = "label_values(gamelake_stream_up, query)"
    GAME = 'label_values(gamelake_game_last_event_timestamp_seconds{query=~"$query"}, game)'
    TABLE = "label_values(gamelake_table_version, table)"
    TITLE = "label_values(gamelake_kpi_day_events, title)"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of panels; its title is a question."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A dashboard."""

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    def to_json(self) -> str:
        """The dashboard as Grafana's file provider reads it."""
        built = self._builder().build()
        # Links to a panel contain its id: without fixed ids Grafana assigns new ones at each start.
        for number, panel in enumerate(built.panels or (), start=1):
            panel.id_val = number
        return json.dumps(built, cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    def _builder(self) -> dashboard.Dashboard:
        page = dashboard.Dashboard(self.title).uid(self.uid).description(self.description).tags([_TAG])
        page = page.time("now-1h", "now").refresh("10s").timezone("browser").readonly()
        page = page.tooltip(model.DashboardCursorSync.CROSSHAIR).link(_other_pages())
        page = page.annotations([_alerts(), _starts(), _rule_changes()])
        for variable in self.variables:
            page = page.with_variable(_choice(variable))
        top = 0
        for row in self.rows:
            page = page.with_row(dashboard.Row(row.title).grid_pos(model.GridPos(h=1, w=FULL_WIDTH, x=0, y=top)))
            places = side_by_side(row.panels, top + 1)
            for panel, place in zip(row.panels, places, strict=True):
                page = page.with_panel(built_panel(panel).grid_pos(place))
            top = max(place.y + place.h for place in places)
        return page


def side_by_side(panels: Sequence[Panel], top: int) -> list[model.GridPos]:
    """Grid positions of panels that fill one line after the other; a line is as high as its highest panel."""
    places, left, line_height = [], 0, 0
    for panel in panels:
        if left + panel.width > FULL_WIDTH:
            top, left, line_height = top + line_height, 0, 0
        places.append(model.GridPos(h=panel.height, w=panel.width, x=left, y=top))
        left, line_height = left + panel.width, max(line_height, panel.height)
    return places


def _choice(variable: Variable) -> dashboard.QueryVariable:
    name = variable.name.lower()
    everything = model.VariableOption(selected=True, text="All", value="$__all")
    choice = dashboard.QueryVariable(name).label(name.capitalize()).query(variable.value).datasource(SOURCE)
    choice = choice.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    return choice.multi(True).include_all(True).all_value(".+").current(everything)


def _alerts() -> dashboard.AnnotationQuery:
    alerts = _annotation("Critical alerts", 'ALERTS{alertstate="firing", severity="critical"}', "red")
    return alerts.title_format("{{alertname}}").text_format("{{query}} {{game}} {{table}} {{job}}")


def _starts() -> dashboard.AnnotationQuery:
    """A service's start is a deploy, a restart or a crash."""
    starts = _annotation("Starts of services", f"1000 * (process_start_time_seconds > time() - {_REMEMBERED})", "blue")
    return starts.title_format("{{job}} started").use_value_for_time(True)


def _rule_changes() -> dashboard.AnnotationQuery:
    since = f"1000 * (gamelake_quality_rules_since_timestamp_seconds > time() - {_REMEMBERED})"
    changes = _annotation("Changes of rules", since, "purple")
    return changes.title_format("rules {{fingerprint}} of {{query}}").use_value_for_time(True)


def _annotation(name: str, expression: str, colour: str) -> dashboard.AnnotationQuery:
    return dashboard.AnnotationQuery().name(name).datasource(SOURCE).enable(True).icon_color(colour).expr(expression)


def _other_pages() -> dashboard.DashboardLink:
    link = dashboard.DashboardLink("Gamelake").type(model.DashboardLinkType.DASHBOARDS).tags([_TAG])
    # Placed in the dashboard, not in the menu, which is the SDK's default.
    return link.placement("").include_vars(True).keep_time(True)
