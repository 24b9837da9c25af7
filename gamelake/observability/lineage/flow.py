"""The lineage of a job: what it reads, what it writes, and by which query."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class RunKind(StrEnum):
    """The kind of a job, which ends by itself or not, in OpenLineage's words."""

    BATCH = "BATCH"
    STREAMING = "STREAMING"


class Influence(StrEnum):
    """The influence of a column on another one, in OpenLineage's words."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"

    @property
    def is_direct(self) -> bool:
        """True if the column's values are in the other's, and don't only decide which rows are."""
        return self in (Influence.IDENTITY, Influence.TRANSFORMATION, Influence.AGGREGATION)


@dataclass(frozen=True, slots=True)
class TopicDataset:
    """A Kafka topic, and the addresses of its Kafka."""

    bootstrap_servers: str
    name: str


@dataclass(frozen=True, slots=True)
class TableDataset:
    """A table, by its path inside the lakehouse."""

    path: str


@dataclass(frozen=True, slots=True)
class FilesDataset:
    """A bucket or folder of files, by its URI."""

    uri: str


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """A column of the table `source` that bears on another one."""

    source: str
    column: str
    influence: Influence


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """A column that is written, the SQL that makes it, and what bears on it."""

    name: str
    sql: str
    origins: tuple[ColumnOrigin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEnd:
    """One input or output.

    Attributes:
        schema_ids: the ids of the Protobuf schemas that its rows came in.
        columns: where its columns come from, if that is known.
        row_origins: what decides which rows it has.
        layout: changes with the table's columns, so that such a change is emitted.
    """

    what: TopicDataset | TableDataset | FilesDataset
    schema_ids: frozenset[int] = frozenset()
    columns: tuple[DerivedColumn, ...] = ()
    row_origins: tuple[ColumnOrigin, ...] = ()
    layout: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One job's lineage: that of a whole program of `jobs/`, or of one query or table that it maintains."""

    job: str
    description: str
    kind: RunKind
    inputs: tuple[FlowEnd, ...]
    outputs: tuple[FlowEnd, ...]
    query: str = ""
    sql: str = ""


def tables(*paths: str) -> tuple[FlowEnd, ...]:
    """Return tables that are only known by their paths."""
    return tuple(FlowEnd(what=TableDataset(path)) for path in paths)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The name that a registry has for a schema."""

    subject: str
    version: int


SchemaVersions: TypeAlias = Callable[[Collection[int]], Mapping[int, SchemaVersion]]
"""Asks for what the registry calls schemas, by their ids; one that is not known is left out."""


def nothing_known(_: Collection[int]) -> Mapping[int, SchemaVersion]:
    """Return no versions: there is no registry to ask."""
    return {}
