"""The lineage as one self-contained HTML page: pictures, style and script are in it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from xml.etree import ElementTree as ET

import msgspec

from gamelake.observability.lineage.graph import Graph, Node, NodeKind
from gamelake.observability.lineage.recorded import Dataset, Derived, OriginColumn, RecordedEvent
from tools.lineage.drawing import picture, shown
from tools.lineage.layout import LineageView


class ColumnDetails(msgspec.Struct, frozen=True):
    """A column: its type, description, and the columns that it is computed from."""

    name: str
    type: str
    description: str
    made_of: str


class Details(msgspec.Struct, frozen=True):
    """Details of a node; `facts` are pairs of a name and a text."""

    title: str
    kind: str
    description: str
    facts: tuple[tuple[str, str], ...]
    columns: tuple[ColumnDetails, ...]
    sql: str


class PageData(msgspec.Struct, frozen=True):
    """The data of the page: details of each node, and the edges."""

    nodes: dict[str, Details]
    edges: list[tuple[str, str]]


def page_data(graph: Graph) -> PageData:
    """Return the data of the page, from the graph."""
    return PageData({name: _details(node) for name, node in graph.nodes.items()}, sorted(graph.edges))


def _details(node: Node) -> Details:
    if node.dataset is None:
        return _job(node.event)
    facets = node.dataset.facets
    return Details(
        title=node.id,
        kind=node.kind.value,
        description=facets.documentation.description if facets.documentation else "",
        facts=tuple(_dataset_facts(node, node.dataset)),
        columns=tuple(_columns(node.dataset)),
        sql="",
    )


def _job(event: RecordedEvent) -> Details:
    facets = event.job.facets
    return Details(
        title=shown(event.job.name),
        kind=NodeKind.JOB.value,
        description=facets.documentation.description if facets.documentation else "",
        facts=tuple(_job_facts(event)),
        columns=(),
        sql=facets.sql.query if facets.sql else "",
    )


def _job_facts(event: RecordedEvent) -> Iterator[tuple[str, str]]:
    program = event.run.facets.parent.job.name if event.run.facets.parent else event.job.name
    yield "program", f"jobs/{program}.py"
    if event.job.facets.job_type:
        yield "kind", event.job.facets.job_type.processing_type.lower()
    if event.run.facets.query:
        yield "query", event.run.facets.query.query
    yield "last run", event.run.run_id
    yield "last event", f"{event.event_type.lower()}, {_moment(event)}"


def _dataset_facts(node: Node, dataset: Dataset) -> Iterator[tuple[str, str]]:
    yield "location", f"{dataset.namespace} {dataset.name}"
    if dataset.facets.version:
        yield "Delta version", dataset.facets.version.dataset_version
    for schema in dataset.facets.protobuf.schemas:
        known = f", {schema.subject} version {schema.version}" if schema.subject else ""
        yield "Protobuf schema", f"id {schema.id}{known}"
    yield "last event", f"of {node.event.job.name}, {_moment(node.event)}"


def _columns(dataset: Dataset) -> Iterator[ColumnDetails]:
    derived = dataset.facets.column_lineage.fields
    for column in dataset.facets.schema.fields:
        made_of = _made_of(derived[column.name]) if column.name in derived else ""
        yield ColumnDetails(column.name, column.type, column.description, made_of)


def _made_of(derived: Derived) -> str:
    direct = [each.field for each in derived.input_fields if _is_direct(each)]
    others = [each.field for each in derived.input_fields if not _is_direct(each)]
    sources = [*direct, *(f"where {field}" for field in others)]
    return (
        f"{derived.transformation_description}  ({', '.join(sources)})"
        if sources
        else derived.transformation_description
    )


def _is_direct(origin: OriginColumn) -> bool:
    return any(each.type == "DIRECT" for each in origin.transformations)


def _moment(event: RecordedEvent) -> str:
    return f"{event.event_time:%d %B %Y, %H:%M:%S} UTC"


_TEMPLATE = Path(__file__).with_name("page.html.template")


def as_page(events: Sequence[RecordedEvent], source: str = "") -> str:
    """Draw the lineage of events, oldest first; `source` is the place where they were recorded."""
    graph = Graph.of(events)
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        summary=escape(_summary(graph, events[-1].event_time if events else None)),
        source=escape(source),
        folded=ET.tostring(picture(graph, LineageView.COLLAPSED), encoding="unicode"),
        open=ET.tostring(picture(graph, LineageView.EXPANDED), encoding="unicode"),
        # A script ends at the first "</script>", even within a string.
        data=msgspec.json.encode(page_data(graph)).decode().replace("<", "\\u003c"),
    )


def _summary(graph: Graph, newest: datetime | None) -> str:
    if newest is None:
        return "No lineage is recorded yet: run make demo, or a job on this lakehouse."
    counts = [(sum(node.kind is kind for node in graph.nodes.values()), kind.value) for kind in NodeKind]
    text = ", ".join(f"{count:,} {kind}{'' if count == 1 else 's'}" for count, kind in counts)
    return f"{text}; the last event is of {newest:%d %B %Y, %H:%M} UTC."
