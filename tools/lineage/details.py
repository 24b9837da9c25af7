"""What the page says of a node that is chosen."""

from collections.abc import Iterator

import msgspec

from gamelake.lineage.graph import Graph, Node, NodeKind
from gamelake.lineage.recorded import Dataset, Derived, OriginColumn, RecordedEvent
from tools.lineage.drawing import shown


class ColumnDetails(msgspec.Struct, frozen=True):
    """A column: its type, what is said of it, and what it is made of."""

    name: str
    type: str
    description: str
    made_of: str


class Details(msgspec.Struct, frozen=True):
    """A node; `facts` are pairs of a name and a text."""

    title: str
    kind: str
    description: str
    facts: tuple[tuple[str, str], ...]
    columns: tuple[ColumnDetails, ...]
    sql: str


class Data(msgspec.Struct, frozen=True):
    """What the page knows: each node, and what leads to what."""

    nodes: dict[str, Details]
    edges: list[tuple[str, str]]


def data_of(graph: Graph) -> Data:
    """Everything that can be asked of the page."""
    return Data({name: _details(node) for name, node in graph.nodes.items()}, sorted(graph.edges))


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
    yield "last told", f"{event.event_type.lower()}, {_moment(event)}"


def _dataset_facts(node: Node, dataset: Dataset) -> Iterator[tuple[str, str]]:
    yield "stands at", f"{dataset.namespace} {dataset.name}"
    if dataset.facets.version:
        yield "Delta version", dataset.facets.version.dataset_version
    for schema in dataset.facets.protobuf.schemas:
        known = f", {schema.subject} version {schema.version}" if schema.subject else ""
        yield "Protobuf schema", f"id {schema.id}{known}"
    yield "last told", f"by {node.event.job.name}, {_moment(node.event)}"


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
