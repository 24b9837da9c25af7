"""Topics and tables as OpenLineage names them, and their current facets."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import unquote, urlsplit

import attr
import msgspec
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_type_dataset,
    dataset_version_dataset,
    documentation_dataset,
    schema_dataset,
    symlinks_dataset,
)
from openlineage.client.naming.dataset import S3, Kafka, LocalFileSystem

from gamelake.delta.log.codec import ENGINE
from gamelake.delta.tables import open_table
from gamelake.objects.store import Location
from gamelake.observability.lineage.flow import (
    ColumnOrigin,
    FilesDataset,
    FlowEnd,
    SchemaVersions,
    TableDataset,
    TopicDataset,
    nothing_known,
)

PRODUCER = f"urn:{ENGINE.lower().replace('/', ':')}"


@attr.define
class ProtobufSchema:
    """A schema that rows came in; the subject and its version are not known while the registry is silent."""

    id: int
    subject: str | None = None
    version: int | None = None


@attr.define
class ProtobufSchemasDatasetFacet(DatasetFacet):
    """The Protobuf schemas that the rows of a table, or the records of a topic, came in."""

    schemas: list[ProtobufSchema] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return f"{PRODUCER}:facets:protobuf_schemas"


@attr.define
class QueryRunFacet(RunFacet):
    """The Spark streaming query that a run is, by the id that goes with its checkpoint."""

    query: str = ""

    @staticmethod
    def _get_schema() -> str:
        return f"{PRODUCER}:facets:query"


class _Column(msgspec.Struct, frozen=True):
    """A column as Delta's log has it; the type is a text, or an object for one that has parts."""

    name: str
    type: str | dict[str, object]
    metadata: dict[str, object] = {}


class _Columns(msgspec.Struct, frozen=True):
    """A schema as Delta's log has it."""

    fields: tuple[_Column, ...]


@dataclass(frozen=True, slots=True)
class Datasets:
    """The tables of one lakehouse, and its topics; what was read of a table is not read again."""

    location: Location
    schemas: SchemaVersions = nothing_known
    _known: dict[str, dict[str, DatasetFacet]] = field(default_factory=dict)

    def now(self) -> Self:
        """Return the same tables without the facets that were read."""
        return replace(self, _known={})

    def read(self, place: FlowEnd) -> InputDataset:
        """Return a dataset as an input, in its current state."""
        namespace, name = self.name(place.what)
        return InputDataset(namespace, name, facets=self._facets(place))

    def written(self, place: FlowEnd) -> OutputDataset:
        """Return a dataset as an output, in its current state."""
        namespace, name = self.name(place.what)
        return OutputDataset(namespace, name, facets=self._facets(place))

    def has(self, table: str) -> bool:
        """Return True if there is such a table yet."""
        return DeltaTable.is_deltatable(self.location.child(table), dict(self.location.options))

    def name(self, what: TopicDataset | TableDataset | FilesDataset) -> tuple[str, str]:
        """Return namespace and name. Source: OpenLineage, "Naming Conventions", heading "Dataset naming"."""
        naming: Kafka | S3 | LocalFileSystem
        if isinstance(what, TopicDataset):
            host, _, port = what.bootstrap_servers.split(",")[0].rpartition(":")
            naming = Kafka(host or port, port, what.name)
        else:
            parts = urlsplit(what.uri if isinstance(what, FilesDataset) else self.location.child(what.path))
            if parts.scheme == "s3":
                # A whole bucket has no key, and a dataset has a name.
                naming = S3(parts.netloc, parts.path.lstrip("/") or "/")
            else:
                naming = LocalFileSystem(unquote(parts.path))
        return naming.get_namespace(), naming.get_name()

    def _facets(self, place: FlowEnd) -> dict[str, DatasetFacet]:
        facets: dict[str, DatasetFacet] = {}
        if place.schema_ids:
            facets["gamelake_protobuf"] = self._schemas(place.schema_ids)
        if isinstance(place.what, TopicDataset):
            return {**facets, "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("TOPIC")}
        if isinstance(place.what, FilesDataset):
            return {**facets, "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("FILE")}
        path = place.what.path
        if path not in self._known:
            self._known[path] = self._table_facets(place.what)
        facets |= self._known[path]
        if place.columns:
            facets["columnLineage"] = self._column_lineage(place)
        return facets

    def _schemas(self, ids: Collection[int]) -> DatasetFacet:
        known = self.schemas(ids)
        schemas = [
            ProtobufSchema(each, *((known[each].subject, known[each].version) if each in known else ()))
            for each in sorted(ids)
        ]
        return ProtobufSchemasDatasetFacet(schemas=schemas)

    def _table_facets(self, table: TableDataset) -> dict[str, DatasetFacet]:
        # The path inside the lakehouse is a name of its own: that by which every job and query knows the table.
        name = symlinks_dataset.Identifier(self.location.uri, table.path, "TABLE")
        facets: dict[str, DatasetFacet] = {
            "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet("TABLE", "DELTA"),
            "symlinks": symlinks_dataset.SymlinksDatasetFacet([name]),
        }
        try:
            handle = open_table(self.location, table.path)
        except TableNotFoundError:
            return facets
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(handle.version()))
        facets["schema"] = _schema(handle.schema().to_json())
        if description := handle.metadata().description:
            facets["documentation"] = documentation_dataset.DocumentationDatasetFacet(description)
        return facets

    def _column_lineage(self, place: FlowEnd) -> DatasetFacet:
        fields = {
            column.name: column_lineage_dataset.Fields(
                [self._origin(each) for each in column.origins], transformationDescription=column.sql
            )
            for column in place.columns
        }
        return column_lineage_dataset.ColumnLineageDatasetFacet(
            fields, dataset=[self._origin(each) for each in place.row_origins]
        )

    def _origin(self, origin: ColumnOrigin) -> column_lineage_dataset.InputField:
        namespace, name = self.name(TableDataset(origin.source))
        kind = "DIRECT" if origin.influence.is_direct else "INDIRECT"
        transformation = column_lineage_dataset.Transformation(kind, origin.influence.value)
        return column_lineage_dataset.InputField(namespace, name, origin.column, [transformation])


def _schema(delta_schema: str) -> DatasetFacet:
    columns = msgspec.json.decode(delta_schema, type=_Columns).fields
    fields = [
        schema_dataset.SchemaDatasetFacetFields(
            each.name, _type_name(each.type), _comment(each), ordinal_position=position
        )
        for position, each in enumerate(columns, start=1)
    ]
    return schema_dataset.SchemaDatasetFacet(fields)


def _type_name(delta: str | dict[str, object]) -> str:
    """A type as SQL writes it."""
    if isinstance(delta, str):
        return delta
    return _PARTS[str(delta["type"])](delta)


def _struct(delta: dict[str, object]) -> str:
    fields = msgspec.convert(delta["fields"], tuple[_Column, ...])
    return f"struct<{', '.join(f'{each.name}: {_type_name(each.type)}' for each in fields)}>"


def _part(delta: dict[str, object], name: str) -> str:
    part = msgspec.convert(delta[name], str | dict[str, object])
    return _type_name(part)


_PARTS: Mapping[str, Callable[[dict[str, object]], str]] = {
    "struct": _struct,
    "array": lambda delta: f"array<{_part(delta, 'elementType')}>",
    "map": lambda delta: f"map<{_part(delta, 'keyType')}, {_part(delta, 'valueType')}>",
}


def _comment(column: _Column) -> str | None:
    comment = column.metadata.get("comment")
    return comment if isinstance(comment, str) else None
