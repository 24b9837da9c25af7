"""What the protocol of a table demands of a writer, and what the platform may do to such a table.

Other programs may switch table features on. An append that only adds files satisfies most of them as it is; each of
the others needs something that the platform does not write.
Source: Delta Transaction Log Protocol, headings "Table Features", "Requirements for Writers" and "Valid Feature Names".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from deltalake import DeltaTable

from gamelake.model.errors import TableRefusedError
from gamelake.storage.delta_log import DELETION_VECTORS, Action, contents_of

# The platform's own tables.
OWN_READER, OWN_WRITER = 1, 2
_WRITER_WITH_FEATURES = 7
CHECKPOINT_PROTECTION = "checkpointProtection"
# The writer versions that bring a feature with them, before version 7 lists each.
_SINCE_WRITER = {
    "appendOnly": 2, "invariants": 2, "checkConstraints": 3, "changeDataFeed": 4, "generatedColumns": 4,
    "columnMapping": 5, "identityColumns": 6,
}  # fmt: skip
# Each demands nothing of a commit that only adds files and changes no metadata:
_SATISFIED = frozenset(
    {
        "appendOnly",  # only removals of rows are forbidden
        "changeDataFeed",  # readers take added files for inserts; change files are for updates and deletes
        DELETION_VECTORS,  # a new file has none, and says how many rows it has
        "domainMetadata",  # domains that are not named stay
        "v2Checkpoint",  # concerns checkpoints, which delta-rs writes by the feature
        "vacuumProtocolCheck",  # concerns vacuum
        CHECKPOINT_PROTECTION,  # concerns log cleanup
    }
)
# Satisfied while no column or property uses the feature: keys of columns, as the schema's JSON has them.
_UNUSED_BY_COLUMNS = {
    "invariants": '"delta.invariants"',
    "generatedColumns": '"delta.generationExpression"',
    "identityColumns": '"delta.identity.',
    "allowColumnDefaults": '"CURRENT_DEFAULT"',
}


class TableUse(StrEnum):
    """What is to be done to a table.

    Attributes:
        APPEND: add files with new rows.
        COMPACT: replace files by others with the same rows, which needs all rows of a file to be rows of the table.
        REWRITE: remove rows, or name the table's files in another one.
    """

    APPEND = "append"
    COMPACT = "compact"
    REWRITE = "rewrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDemands:
    """The protocol of a table, and the properties and columns (as JSON) that features depend on."""

    reader: int
    writer: int
    listed: frozenset[str]
    properties: Mapping[str, str]
    schema: str

    @classmethod
    def of(cls, handle: DeltaTable) -> Self:
        """The demands of an open table."""
        protocol = handle.protocol()
        return cls(
            reader=protocol.min_reader_version,
            writer=protocol.min_writer_version,
            listed=frozenset(protocol.reader_features or ()) | frozenset(protocol.writer_features or ()),
            properties=handle.metadata().configuration,
            schema=handle.schema().to_json(),
        )

    @classmethod
    def none(cls, schema: str) -> Self:
        """The demands of a new table of the platform's own."""
        return cls(reader=OWN_READER, writer=OWN_WRITER, listed=frozenset(), properties={}, schema=schema)

    def after(self, actions: Iterable[Action]) -> Self:
        """The demands after a commit."""
        found, actions = self, list(actions)
        for protocol in contents_of(actions, "protocol"):
            features = [*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())]
            found = replace(
                found,
                reader=protocol["minReaderVersion"],
                writer=protocol["minWriterVersion"],
                listed=frozenset(features),
            )
        for metadata in contents_of(actions, "metaData"):
            found = replace(found, properties=metadata.get("configuration") or {}, schema=metadata["schemaString"])
        return found

    @property
    def is_upgraded(self) -> bool:
        """Whether the protocol is a newer one than that of the platform's own tables."""
        return self.reader > OWN_READER or self.writer > OWN_WRITER

    @property
    def features(self) -> frozenset[str]:
        """The features that the protocol has, by its list or by its version."""
        if self.writer >= _WRITER_WITH_FEATURES:
            return self.listed
        return self.listed | {name for name, since in _SINCE_WRITER.items() if since <= self.writer}

    def obstacles(self, use: TableUse) -> list[str]:
        """The features that stand in the way of a use, sorted; versions, where the use is for own tables only."""
        if use is TableUse.REWRITE and self.is_upgraded:
            return sorted(self.listed) or [f"reader version {self.reader}, writer version {self.writer}"]
        found = {name for name in self.features if not self._is_satisfied(name)}
        if use is TableUse.COMPACT:
            found |= self.features & {DELETION_VECTORS}
        if self.writer > _WRITER_WITH_FEATURES:
            found.add(f"writer version {self.writer}")
        return sorted(found)

    def require(self, table: str, use: TableUse) -> None:
        """Check a use.

        Raises:
            TableRefusedError: a feature of the table stands in its way.
        """
        if found := self.obstacles(use):
            raise TableRefusedError(
                f"{table} has {', '.join(found)} (reader version {self.reader}, writer version {self.writer}), which "
                f"the platform can't {use}. Drop the table feature that was added to the table"
            )

    def _is_satisfied(self, feature: str) -> bool:
        if feature in _UNUSED_BY_COLUMNS:
            return _UNUSED_BY_COLUMNS[feature] not in self.schema
        if feature == "checkConstraints":
            return not any(name.startswith("delta.constraints.") for name in self.properties)
        if feature == "columnMapping":
            return self.properties.get("delta.columnMapping.mode", "none") == "none"
        if feature == "inCommitTimestamp":
            return self.properties.get("delta.enableInCommitTimestamps", "false").lower() != "true"
        return feature in _SATISFIED
