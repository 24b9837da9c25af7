"""Superset's files: a database, datasets, charts and dashboards, in the format of its export."""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gamelake.model.errors import ContractError
from tools.dashboards.datasets import DATE, TIME, Figure, SupersetDataset
from tools.dashboards.pages import Chart, SupersetDashboard

Document = dict[str, Any]

# Ids are made of names in this namespace. With another one, a Superset in use would keep the old charts too.
_NAMESPACE = uuid.UUID("5f1c1b0e-6f0b-4c1c-9f0e-5a1e0c3d7a52")
_VERSION = "1.0.0"
DATABASE = "Trino"
_KINDS = {
    "number": "big_number_total",
    "line": "echarts_timeseries_line",
    "bar": "echarts_timeseries_bar",
    "table": "table",
}
_GRAINS = {"event_date": "P1D", "hour": "PT1H", "minute": "PT5M"}
# Superset's unit of height is 8 pixels.
_HEIGHTS = {"number": 18, "line": 50, "bar": 50, "table": 50}
_MOST_ROWS = 10_000
_HEAD = "# Written by `python -m tools.dashboards --write`.\n"


@dataclass(frozen=True, slots=True)
class Assets:
    """The files of the dashboards' folder.

    Attributes:
        datasets: by the names of their tables.
        pages: the dashboards.
    """

    datasets: Mapping[str, SupersetDataset]
    pages: tuple[SupersetDashboard, ...]

    def files(self) -> Mapping[str, str]:
        """Return the text of each file, by its path in the folder.

        Raises:
            ContractError: a chart names a column or figure that its dataset lacks.
        """
        documents = {
            "metadata.yaml": {"version": _VERSION, "type": "assets", "timestamp": "2026-01-01T00:00:00+00:00"},
            f"databases/{DATABASE}.yaml": _database(),
        }
        documents |= {f"datasets/{DATABASE}/{table}.yaml": _dataset(each) for table, each in self.datasets.items()}
        for page in self.pages:
            for chart in charts_of(page):
                documents[f"charts/{page.slug}/{_slug(chart.title)}.yaml"] = self._chart(page, chart)
            documents[f"dashboards/{page.slug}.yaml"] = self._dashboard(page)
        return {path: _HEAD + _text(document) for path, document in documents.items()}

    def _chart(self, page: SupersetDashboard, chart: Chart) -> Document:
        dataset = self.datasets[chart.dataset]
        _require(chart, dataset)
        params: Document = {
            "viz_type": _KINDS[chart.kind],
            "adhoc_filters": list(_conditions(chart, dataset)),
            "row_limit": _MOST_ROWS,
            **_params(chart, dataset),
        }
        return {
            "slice_name": chart.title,
            "description": "; ".join(filter(None, (dataset.figures[name].description for name in chart.figures)))
            or None,
            "viz_type": _KINDS[chart.kind],
            "params": params,
            "query_context": None,
            "cache_timeout": None,
            "uuid": _chart_id(page, chart),
            "version": _VERSION,
            "dataset_uuid": _id(f"dataset/{chart.dataset}"),
        }

    def _dashboard(self, page: SupersetDashboard) -> Document:
        return {
            "dashboard_title": page.title,
            "description": page.description,
            "slug": page.slug,
            "uuid": _id(f"dashboard/{page.slug}"),
            "published": True,
            "css": "",
            "version": _VERSION,
            "position": _Layout(page).document(),
            "metadata": {
                "native_filter_configuration": [
                    _filter(page, title, table, column) for title, (table, column) in page.filters.items()
                ],
                "color_scheme": "supersetColors",
                "cross_filters_enabled": True,
                "refresh_frequency": 0,
                "timed_refresh_immune_slices": [],
                "expanded_slices": {},
                "label_colors": {},
                "chart_configuration": {},
                "global_chart_configuration": {},
                "default_filters": "{}",
            },
        }


def charts_of(page: SupersetDashboard) -> Iterator[Chart]:
    """Yield the charts of a dashboard, row by row."""
    for rows in page.tabs.values():
        for row in rows:
            yield from row


def _require(chart: Chart, dataset: SupersetDataset) -> None:
    columns = {*chart.by, *chart.columns, *([chart.across] if chart.kind in ("line", "bar") else [])}
    missing = sorted((columns - dataset.columns.keys()) | (set(chart.figures) - dataset.figures.keys()))
    if missing:
        raise ContractError(f"'{chart.title}' needs {', '.join(missing)}, which {dataset.table} lacks")


def _conditions(chart: Chart, dataset: SupersetDataset) -> Iterator[Document]:
    if chart.days:
        yield {
            "clause": "WHERE",
            "expressionType": "SIMPLE",
            "subject": dataset.day,
            "operator": "TEMPORAL_RANGE",
            "comparator": chart.days,
        }
    if chart.where:
        yield {"clause": "WHERE", "expressionType": "SQL", "sqlExpression": chart.where}


def _params(chart: Chart, dataset: SupersetDataset) -> Document:
    figures = [dataset.figures[name] for name in chart.figures]
    if chart.kind == "number":
        [figure] = figures
        return {"metric": figure.name, "y_axis_format": figure.format, "header_font_size": 0.4}
    if chart.kind == "table":
        return _table_params(chart, figures)
    return {
        "metrics": list(chart.figures),
        "groupby": list(chart.by),
        "x_axis": chart.across,
        "x_axis_sort_asc": True,
        "x_axis_time_format": "smart_date",
        "y_axis_format": figures[0].format,
        "show_legend": True,
        "legendType": "scroll",
        "legendOrientation": "top",
        "rich_tooltip": True,
        "markerEnabled": chart.kind == "line",
        "stack": "Stack" if chart.kind == "bar" else None,
        **({"time_grain_sqla": _GRAINS[chart.across]} if chart.across in _GRAINS else {}),
    }


def _table_params(chart: Chart, figures: list[Figure]) -> Document:
    common: Document = {"table_timestamp_format": "smart_date", "order_desc": True, "show_cell_bars": False}
    if chart.columns:
        order = [json.dumps([chart.order_by, False])] if chart.order_by else []
        return {**common, "query_mode": "raw", "all_columns": list(chart.columns), "order_by_cols": order}
    formats = {each.name: {"d3NumberFormat": each.format} for each in figures if each.format}
    return {
        **common,
        "query_mode": "aggregate",
        "groupby": list(chart.by),
        "metrics": [each.name for each in figures],
        "column_config": formats,
    }


def _database() -> Document:
    return {
        "database_name": DATABASE,
        # The address in the stack. superset_config.py adds the password of the user `superset`.
        "sqlalchemy_uri": "trino://superset@trino:8080/delta",
        "impersonate_user": True,
        "expose_in_sqllab": True,
        "allow_run_async": False,
        "allow_ctas": False,
        "allow_cvas": False,
        "allow_dml": False,
        "allow_csv_upload": False,
        "extra": {"allows_virtual_table_explore": True, "engine_params": {"connect_args": {"http_scheme": "https"}}},
        "cache_timeout": None,
        "uuid": _id("database/Trino"),
        "version": _VERSION,
    }


def _dataset(dataset: SupersetDataset) -> Document:
    schema, _, table = dataset.table.partition(".")
    return {
        "table_name": table,
        "schema": schema,
        "catalog": "delta",
        "main_dttm_col": dataset.day,
        "sql": None,
        "uuid": _id(f"dataset/{dataset.table}"),
        "metrics": [
            {
                "metric_name": figure.name,
                "verbose_name": figure.label,
                "expression": figure.sql,
                "description": figure.description or None,
                "d3format": figure.format or None,
            }
            for figure in dataset.figures.values()
        ],
        "columns": [
            {
                "column_name": name,
                "description": meaning or None,
                "type": kind,
                "is_dttm": kind in (DATE, TIME),
                "is_active": True,
                "groupby": True,
                "filterable": True,
            }
            for name, (kind, meaning) in dataset.columns.items()
        ],
        "version": _VERSION,
        "database_uuid": _id("database/Trino"),
    }


def _filter(page: SupersetDashboard, title: str, table: str, column: str) -> Document:
    return {
        "id": f"NATIVE_FILTER-{_slug(title)}-{page.slug}",
        "name": title,
        "type": "NATIVE_FILTER",
        "filterType": "filter_select",
        **({"requiredFirst": {"defaultToFirstItem": True}} if page.first_value else {}),
        "targets": [{"datasetUuid": _id(f"dataset/{table}"), "column": {"name": column}}],
        "controlValues": {
            "multiSelect": not page.first_value,
            "enableEmptyFilter": page.first_value,
            "defaultToFirstItem": page.first_value,
            "inverseSelection": False,
            "searchAllOptions": False,
            "sortAscending": True,
        },
        "defaultDataMask": {"extraFormData": {}, "filterState": {}},
        "cascadeParentIds": [],
        "scope": {"rootPath": ["ROOT_ID"], "excluded": []},
        "description": "",
    }


@dataclass(slots=True)
class _Layout:
    """The tree of a dashboard's rows; each node names its children and its parents."""

    page: SupersetDashboard
    nodes: Document = field(default_factory=dict)
    number: int = 0

    def document(self) -> Document:
        tabs = self.page.tabs
        self.nodes = {
            "DASHBOARD_VERSION_KEY": "v2",
            "HEADER_ID": {"id": "HEADER_ID", "type": "HEADER", "meta": {"text": self.page.title}},
        }
        if list(tabs) == [""]:
            self._node("ROOT_ID", "ROOT", ["GRID_ID"], [])
            self._node("GRID_ID", "GRID", self._rows(tabs[""], ["ROOT_ID", "GRID_ID"]), ["ROOT_ID"])
            return self.nodes
        names = {title: f"TAB-{_slug(title)}" for title in tabs}
        self._node("ROOT_ID", "ROOT", ["TABS-all"], [])
        # Superset needs the grid even if a dashboard has only tabs.
        self._node("GRID_ID", "GRID", [], ["ROOT_ID"])
        self._node("TABS-all", "TABS", list(names.values()), ["ROOT_ID"])
        for title, rows in tabs.items():
            parents = ["ROOT_ID", "TABS-all"]
            children = self._rows(rows, [*parents, names[title]])
            self._node(names[title], "TAB", children, parents, {"text": title})
        return self.nodes

    def _rows(self, rows: tuple[tuple[Chart, ...], ...], parents: list[str]) -> list[str]:
        names = []
        for row in rows:
            name = f"ROW-{len(self.nodes)}"
            names.append(name)
            children = [self._chart(chart, [*parents, name]) for chart in row]
            self._node(name, "ROW", children, parents, {"background": "BACKGROUND_TRANSPARENT"})
        return names

    def _chart(self, chart: Chart, parents: list[str]) -> str:
        self.number += 1
        name = f"CHART-{_slug(chart.title)}"
        meta = {
            "uuid": _chart_id(self.page, chart),
            # Superset replaces this with its own number.
            "chartId": self.number,
            "sliceName": chart.title,
            "width": chart.width,
            "height": _HEIGHTS[chart.kind],
        }
        self._node(name, "CHART", [], parents, meta)
        return name

    def _node(
        self, name: str, kind: str, children: list[str], parents: list[str], meta: Document | None = None
    ) -> None:
        self.nodes[name] = {"id": name, "type": kind, "children": children, "parents": parents, "meta": meta or {}}


def _chart_id(page: SupersetDashboard, chart: Chart) -> str:
    return _id(f"chart/{page.slug}/{chart.title}")


def _id(name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, name))


def _slug(title: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower()).replace("--", "-").strip("-")


def _text(document: Document) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True))
