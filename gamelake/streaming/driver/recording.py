"""Records decisions in the order of all streams that write the same tables, unless another writer was faster."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from gamelake.delta.appends import columns_of
from gamelake.delta.columns import conflicts, merged_or_first
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.errors import TableRefusedError, TwiceTakenError
from gamelake.model.logs import event_logger
from gamelake.streaming.dedup.cross_source import DecisionOrder

log = event_logger(__name__)

_ATTEMPTS = 5
_TURNS = 20


@dataclass
class DecisionRecord:
    """Records the decision of one batch, which may take several attempts to decide it.

    Up to 5 attempts may lose against another stream. Attempts that find widened tables don't count: in the next one the
    records with the conflicting columns become dead letters.

    Attributes:
        order: of the decisions of all streams.
        tables: of the lakehouse.
        learn: receives the columns of widened tables, by table name; returns False if the decider can't use them.
    """

    order: DecisionOrder
    tables: DeltaTables
    learn: Callable[[Mapping[str, pa.Schema]], bool]
    _learned: dict[str, pa.Schema] = field(default_factory=dict)
    _lost: int = 0

    def add(self, manifest: BatchManifest) -> bool:
        """Record a decision, unless another writer was faster.

        Args:
            manifest: of the decision.

        Returns:
            False if the batch must be decided again; the decisions of other streams have been read for that.

        Raises:
            TwiceTakenError: another stream was faster in every attempt.
        """
        # In each lost turn another stream has decided a batch, and must read its next one before it competes again.
        for _ in range(_TURNS):
            if not self.order.is_clear(manifest.tables):
                break
            if self._has_learned(column_clashes(self.order.decided(), self.tables, manifest), manifest.batch_id):
                self.order.refresh()
                return False
            if self.order.record(manifest):
                return True
        self._count_loss(manifest.batch_id)
        self.order.refresh()
        return False

    def _has_learned(self, clashes: Mapping[str, pa.Schema], batch: int) -> bool:
        """Pass the columns of widened tables on; return False if the decision stands.

        If a table still conflicts with columns that the batch was decided with, the commit will hold the table back.
        """
        widened = {table: columns for table, columns in clashes.items() if self._learned.get(table) != columns}
        self._learned |= widened
        if not widened or not self.learn(widened):
            return False
        log.warning("batch_decided_again", batch=batch, reason="columns of other types", tables=[*widened])
        return True

    def _count_loss(self, batch: int) -> None:
        self._lost += 1
        log.info("batch_decided_again", batch=batch, reason="another stream has decided some of its events")
        if self._lost == _ATTEMPTS:
            raise TwiceTakenError(
                f"batch {batch}: another stream committed some of its events first in each of {_ATTEMPTS} attempts. "
                "Nothing of the batch was committed; the next start decides it again"
            )


def column_clashes(decided: Sequence[TableFiles], tables: DeltaTables, manifest: BatchManifest) -> dict[str, pa.Schema]:
    """Find the tables that other writers have widened so that a decision could not be committed.

    Args:
        decided: the files of the other stream's newest decision, which counts even if it is not committed yet.
        tables: of the lakehouse.
        manifest: of the decision.

    Returns:
        The columns of these tables, in Delta types, by table name.
    """
    by_others = {entry.table: entry for entry in decided}
    columns, clashes = _new_columns(tables, manifest), {}
    for entry in manifest.tables:
        have = columns.get(entry.table)
        others = by_others.get(entry.table)
        if others is not None and others.schema != entry.schema:
            have = merged_or_first(have or pa.schema([]), columns_of(others))
        if have is not None and conflicts(have, columns_of(entry)):
            clashes[entry.table] = have
    return clashes


def _new_columns(tables: DeltaTables, manifest: BatchManifest) -> dict[str, pa.Schema | None]:
    """Read the newest columns of the tables whose columns this process does not know, in parallel.

    Returns:
        The columns by table name; None for a table that gets no new columns, does not exist, or refuses the batch.
    """
    unknown = [entry for entry in manifest.tables if not tables.knows(entry, manifest.app_id)]
    if not unknown:
        return {}

    def columns_for(entry: TableFiles) -> pa.Schema | None:
        try:
            return tables.columns_for(entry, manifest.app_id)
        except TableRefusedError:
            return None  # the commit will hold the table back

    with ThreadPoolExecutor(min(len(unknown), tables.at_once)) as pool:
        found = pool.map(columns_for, unknown)
        return {entry.table: columns for entry, columns in zip(unknown, found, strict=True)}
