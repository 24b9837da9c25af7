"""Converts panels to the builders of the Grafana SDK."""

import re
from functools import singledispatch
from string import ascii_uppercase
from typing import TypeVar

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.builders.dashboard import DashboardLink, ThresholdsConfig
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as look
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from monitoring.addresses import runbook_url
from monitoring.grafana.panels import (
    BarGauge,
    Column,
    Link,
    Panel,
    Rating,
    Stack,
    Stat,
    StateTimeline,
    Table,
    Thresholds,
    TimeSeries,
    Word,
)

SOURCE = look.DataSourceRef(type_val="prometheus", uid="prometheus")
_COLOURS = {Rating.CALM: "green", Rating.WARN: "#EAB839", Rating.BAD: "red"}
_LABEL = re.compile(r"{{(\w+)}}")

GrafanaPanel = stat.Panel | bargauge.Panel | timeseries.Panel | table.Panel | statetimeline.Panel
_Kind = TypeVar("_Kind", stat.Panel, bargauge.Panel, timeseries.Panel, table.Panel, statetimeline.Panel)


@singledispatch
def built_panel(panel: Panel) -> GrafanaPanel:
    """Convert a panel to a builder of the Grafana SDK.

    Raises:
        TypeError: there is no builder for this kind of panel.
    """
    raise TypeError(f"no Grafana panel type for {panel!r}")


@built_panel.register
def _(panel: Stat) -> GrafanaPanel:
    drawing = _begun(stat.Panel(), panel, _instant(panel)).color_mode(look.BigValueColorMode.VALUE)
    drawing = drawing.graph_mode(look.BigValueGraphMode.NONE).reduce_options(_newest())
    # Without it Grafana hides the name of a series that is the only one.
    return drawing.text_mode(look.BigValueTextMode.VALUE_AND_NAME)


@built_panel.register
def _(panel: TimeSeries) -> GrafanaPanel:
    drawing = _begun(timeseries.Panel(), panel, _over_time(panel)).min(0).axis_soft_max(panel.soft_max)
    drawing = drawing.legend(_legend(panel))
    drawing = drawing.tooltip(
        common.VizTooltipOptions().mode(look.TooltipDisplayMode.MULTI).sort(look.SortOrder.DESCENDING)
    )
    if panel.thresholds:
        drawing = drawing.thresholds_style(
            common.GraphThresholdsStyleConfig().mode(look.GraphThresholdsStyleMode.DASHED)
        )
    if panel.stack is Stack.NORMAL:
        drawing = drawing.fill_opacity(40).stacking(common.StackingConfig().mode(look.StackingMode.NORMAL))
    return drawing


@built_panel.register
def _(panel: BarGauge) -> GrafanaPanel:
    drawing = _begun(bargauge.Panel(), panel, _instant(panel)).reduce_options(_newest())
    # Without it Grafana hides the name of a series that is the only one.
    drawing = drawing.display_name(_LABEL.sub(r"${__field.labels.\1}", panel.queries[0].legend))
    return drawing.orientation(look.VizOrientation.HORIZONTAL).display_mode(look.BarGaugeDisplayMode.BASIC).min(0)


@built_panel.register
def _(panel: StateTimeline) -> GrafanaPanel:
    drawing = _begun(statetimeline.Panel(), panel, _over_time(panel)).show_value(look.VisibilityMode.NEVER)
    return drawing.merge_values(True).legend(common.VizLegendOptions().show_legend(False))


@built_panel.register
def _(panel: Table) -> GrafanaPanel:
    drawing = _begun(table.Panel(), panel, _as_table(panel)).filterable(True).min_width(80)
    drawing = drawing.cell_height(look.TableCellHeight.SM)
    drawing = drawing.sort_by([TableSortByFieldState().display_name(panel.sort).desc(not panel.smallest_first)])
    # A single query has no letter.
    values = {f"Value #{letter}": column.name for letter, column in zip(ascii_uppercase, panel.columns, strict=False)}
    values |= {"Value": panel.columns[0].name} if len(panel.columns) == 1 else {}
    order = {name: place for place, name in enumerate([panel.label, *panel.more_labels, *values])}
    organised = {"excludeByName": {"Time": True}, "renameByName": values, "indexByName": order}
    drawing = drawing.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    drawing = drawing.with_transformation(model.DataTransformerConfig(id_val="organize", options=organised))
    for column in panel.columns:
        drawing = drawing.override_by_name(column.name, _column(column))
    links = [_row_link(link, panel.label) for link in panel.links]
    return drawing.override_by_name(panel.label, [model.DynamicConfigValue(id_val="links", value=links)])


def _column(column: Column) -> list[model.DynamicConfigValue]:
    settings: dict[str, object] = {"unit": column.unit}
    if column.words:
        settings["mappings"] = _mappings(column.words)
    if column.thresholds:
        settings["thresholds"] = _thresholds(column.thresholds).build()
    if column.width:
        settings["custom.width"] = column.width
    if column.words or column.thresholds:
        settings["custom.cellOptions"] = {"type": "color-text"}
    return [model.DynamicConfigValue(id_val=name, value=value) for name, value in settings.items()]


def _row_link(link: Link, label: str) -> dict[str, object]:
    row = f"${{__data.fields.{label}}}"
    url = f"/d/{link.page}?var-{link.variable}={link.template.format(row)}" if link.page else runbook_url(row)
    return {"title": link.title, "url": url, "targetBlank": not link.page}


def _legend(panel: TimeSeries) -> common.VizLegendOptions:
    legend = common.VizLegendOptions().show_legend(True).calcs(["lastNotNull", "max"])
    if any(_LABEL.search(query.legend) for query in panel.queries):
        # Below the graph Grafana shows two rows of it.
        return legend.display_mode(look.LegendDisplayMode.TABLE).placement(look.LegendPlacement.RIGHT)
    return legend.display_mode(look.LegendDisplayMode.LIST).placement(look.LegendPlacement.BOTTOM)


def _begun(drawing: _Kind, panel: Panel, queries: list[prometheus.Dataquery]) -> _Kind:
    """Set what all kinds of panels have in common."""
    drawing = drawing.title(panel.title).description(panel.description).unit(panel.unit).datasource(SOURCE)
    drawing = drawing.thresholds(_thresholds(panel.thresholds)).no_value(panel.empty)
    if panel.words:
        drawing = drawing.mappings(_mappings(panel.words))
    runbooks: list[Builder[model.DashboardLink]] = [
        DashboardLink(f"Runbook {name}").type(model.DashboardLinkType.LINK).url(runbook_url(name)).target_blank(True)
        for name in panel.runbooks
    ]
    drawing = drawing.links(runbooks)
    for query in queries:
        drawing = drawing.with_target(query)
    return drawing


def _mappings(words: tuple[Word, ...]) -> list[model.ValueMapping]:
    results = {
        f"{word.value:g}": model.ValueMappingResult(text=word.text, color=_COLOURS[word.rating], index=index)
        for index, word in enumerate(words)
    }
    return [model.ValueMap(options=results)]


def _thresholds(thresholds: Thresholds | None) -> ThresholdsConfig:
    calm, warn, bad = (_COLOURS[rating] for rating in Rating)
    steps = [model.Threshold(value=None, color=calm)]
    if thresholds and thresholds.small_is_bad:
        steps = [
            model.Threshold(value=None, color=bad),
            model.Threshold(value=thresholds.bad, color=warn),
            model.Threshold(value=thresholds.warn, color=calm),
        ]
    elif thresholds:
        steps += [
            model.Threshold(value=thresholds.warn, color=warn),
            model.Threshold(value=thresholds.bad, color=bad),
        ]
    return ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)


def _newest() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)


def _queries(panel: Panel) -> list[prometheus.Dataquery]:
    return [
        prometheus.Dataquery().ref_id(letter).datasource(SOURCE).expr(query.expr).legend_format(query.legend)
        for letter, query in zip(ascii_uppercase, panel.queries, strict=False)
    ]


def _instant(panel: Panel) -> list[prometheus.Dataquery]:
    return [query.instant() for query in _queries(panel)]


def _over_time(panel: Panel) -> list[prometheus.Dataquery]:
    return [query.range() for query in _queries(panel)]


def _as_table(panel: Panel) -> list[prometheus.Dataquery]:
    return [query.format(PromQueryFormat.TABLE) for query in _instant(panel)]
