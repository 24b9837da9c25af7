"""Converts panels to the builders of the Grafana SDK."""

from functools import singledispatch
from string import ascii_uppercase
from typing import TypeVar

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models import common as look
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from monitoring.grafana.panels import BarGauge, Panel, Stack, Stat, Table, Thresholds, TimeSeries

SOURCE = look.DataSourceRef(type_val="prometheus", uid="prometheus")
_CALM, _WARN, _BAD = "green", "#EAB839", "red"

GrafanaPanel = stat.Panel | bargauge.Panel | timeseries.Panel | table.Panel
_Kind = TypeVar("_Kind", stat.Panel, bargauge.Panel, timeseries.Panel, table.Panel)


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
    if panel.words:
        results = {f"{number:g}": model.ValueMappingResult(text=word) for number, word in panel.words}
        drawing = drawing.mappings([model.ValueMap(options=results)])
    return drawing


@built_panel.register
def _(panel: TimeSeries) -> GrafanaPanel:
    drawing = _begun(timeseries.Panel(), panel, _over_time(panel)).min(0)
    drawing = drawing.legend(
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(look.LegendDisplayMode.TABLE)
        .placement(look.LegendPlacement.RIGHT if panel.width > 12 else look.LegendPlacement.BOTTOM)  # noqa: PLR2004 - half
        .calcs(["lastNotNull", "max"])
    )
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
    return drawing.orientation(look.VizOrientation.HORIZONTAL).display_mode(look.BarGaugeDisplayMode.BASIC).min(0)


@built_panel.register
def _(panel: Table) -> GrafanaPanel:
    drawing = _begun(table.Panel(), panel, _as_table(panel)).filterable(True)
    values = {f"Value #{letter}": column.name for letter, column in zip(ascii_uppercase, panel.columns, strict=False)}
    order = {name: place for place, name in enumerate([panel.label, *values])}
    organised = {"excludeByName": {"Time": True}, "renameByName": values, "indexByName": order}
    drawing = drawing.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    drawing = drawing.with_transformation(model.DataTransformerConfig(id_val="organize", options=organised))
    for column in panel.columns:
        drawing = drawing.override_by_name(column.name, [model.DynamicConfigValue(id_val="unit", value=column.unit)])
    return drawing


def _begun(drawing: _Kind, panel: Panel, queries: list[prometheus.Dataquery]) -> _Kind:
    """Set what all kinds of panels have in common."""
    drawing = drawing.title(panel.title).description(panel.description).unit(panel.unit).datasource(SOURCE)
    drawing = drawing.thresholds(_thresholds(panel.thresholds))
    for query in queries:
        drawing = drawing.with_target(query)
    return drawing


def _thresholds(thresholds: Thresholds | None) -> ThresholdsConfig:
    steps = [model.Threshold(value=None, color=_CALM)]
    if thresholds and thresholds.small_is_bad:
        steps = [
            model.Threshold(value=None, color=_BAD),
            model.Threshold(value=thresholds.bad, color=_WARN),
            model.Threshold(value=thresholds.warn, color=_CALM),
        ]
    elif thresholds:
        steps += [
            model.Threshold(value=thresholds.warn, color=_WARN),
            model.Threshold(value=thresholds.bad, color=_BAD),
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
