"""Protocol requirements of a table for a writer, and the platform's permitted uses of such a table.

Other programs may enable table features. An append that only adds files satisfies most features without changes. Each
of the others needs something that the platform does not write.
Source: Delta Transaction Log Protocol, headings "Table Features", "Requirements for Writers" and "Valid Feature Names".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from deltalake import DeltaTable

from gamelake.delta.log.codec import DELETION_VECTORS, Action, contents_of
from gamelake.model.errors import TableRefusedError

# The protocol versions of the platform's own tables.
OWN_READER, OWN_WRITER = 1, 2
_WRITER_WITH_FEATURES = 7
CHECKPOINT_PROTECTION = "checkpointProtection"
# With this property, readers ignore old transactions, so that a committed batch could be appended again.
FORGETS_TRANSACTIONS = "delta.setTransactionRetentionDuration"
# The first writer version that implies a feature. From version 7 on, the protocol lists each feature.
_SINCE_WRITER = {
    "appendOnly": 2, "invariants": 2, "checkConstraints": 3, "changeDataFeed": 4, "generatedColumns": 4,
    "columnMapping": 5, "identityColumns": 6,
}  # fmt: skip
# These features need nothing from a commit that only adds files and changes no metadata:
_SATISFIED = frozenset(
    {
        "appendOnly",  # forbids only the removal of rows
        "changeDataFeed",  # readers treat added files as inserts; change files are for updates and deletes
        DELETION_VECTORS,  # a new file has none, and its statistics have the number of rows
        "domainMetadata",  # a commit that names no domain changes none
        "v2Checkpoint",  # concerns checkpoints, which delta-rs writes in the feature's format
        "vacuumProtocolCheck",  # concerns vacuum
        CHECKPOINT_PROTECTION,  # concerns log cleanup
    }
)
# These features are satisfied while no column uses them; the values are the columns' keys in the schema's JSON.
_UNUSED_BY_COLUMNS = {
    "invariants": '"delta.invariants"',
    "generatedColumns": '"delta.generationExpression"',
    "identityColumns": '"delta.identity.',
    "allowColumnDefaults": '"CURRENT_DEFAULT"',
}


class TableUse(StrEnum):
    """A use of a table.

    Attributes:
        APPEND: add files with new rows.
        COMPACT: replace files by others with the same rows; no row of a file may be deleted by a deletion vector.
        REWRITE: remove rows, or name the table's files in another table.
    """

    APPEND = "append"
    COMPACT = "compact"
    REWRITE = "rewrite"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDemands:
    """The protocol of a table, and the properties and columns that its features depend on.

    Attributes:
        reader: the minimum reader version.
        writer: the minimum writer version.
        listed: the features that the protocol lists.
        properties: of the table.
        schema: the columns as JSON.
    """

    reader: int
    writer: int
    listed: frozenset[str]
    properties: Mapping[str, str]
    schema: str

    @classmethod
    def of(cls, handle: DeltaTable) -> Self:
        """Read the demands of an open table."""
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
        """Return the demands of a new table that the platform creates with a schema (JSON)."""
        return cls(reader=OWN_READER, writer=OWN_WRITER, listed=frozenset(), properties={}, schema=schema)

    def after(self, actions: Iterable[Action]) -> Self:
        """Return the demands after a commit with these actions."""
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
        """True if the protocol is newer than that of the platform's own tables."""
        return self.reader > OWN_READER or self.writer > OWN_WRITER

    @property
    def features(self) -> frozenset[str]:
        """The features that the protocol lists, or that its version implies."""
        if self.writer >= _WRITER_WITH_FEATURES:
            return self.listed
        return self.listed | {name for name, since in _SINCE_WRITER.items() if since <= self.writer}

    def obstacles(self, use: TableUse) -> list[str]:
        """Return the features that prevent a use, sorted; empty if the use is permitted.

        An upgraded table without listed features can't be rewritten; its obstacle is its protocol version.
        """
        if use is TableUse.REWRITE and self.is_upgraded:
            return sorted(self.listed) or [f"reader version {self.reader}, writer version {self.writer}"]
        found = {name for name in self.features if not self._is_satisfied(name)}
        if use is TableUse.COMPACT:
            found |= self.features & {DELETION_VECTORS}
        if self.writer > _WRITER_WITH_FEATURES:
            found.add(f"writer version {self.writer}")
        if use is TableUse.APPEND and FORGETS_TRANSACTIONS in self.properties:
            found.add(f"the property {FORGETS_TRANSACTIONS}")
        return sorted(found)

    def require(self, table: str, use: TableUse) -> None:
        """Check that a use is permitted.

        Raises:
            TableRefusedError: a feature of the table prevents the use.
        """
        if found := self.obstacles(use):
            raise TableRefusedError(
                f"{table} has {', '.join(found)} (reader version {self.reader}, writer version {self.writer}), which "
                f"the platform can't {use}. Drop the table feature, or unset the property, that was added to the table"
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
