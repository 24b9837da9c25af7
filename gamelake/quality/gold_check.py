"""Compares the events that a game's gold counts with the version of silver that gold was made of.

Silver's rows are counted by the statistics in its log. Only where the platform's own test events, which gold leaves
out, may explain a difference is one column read.
"""

import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gamelake.delta.appends import schema_of
from gamelake.delta.listing import has_log
from gamelake.delta.log.codec import changes_rows, commit_info_of, live_files, preceding_entries
from gamelake.delta.tables import open_table
from gamelake.model.naming import game_table, gold_table
from gamelake.objects.store import Store
from gamelake.quality.check_findings import Bounds, CheckStatus, TableFinding
from gamelake.scans.datasets import dataset, missing_files

GOLD_CHECK = "gold_counts_silver"
_SOURCE = "gamelake.source"
_NAME, _TEST_EVENT = "event_name", "smoke_test"


@dataclass(frozen=True, slots=True)
class GoldCheck:
    """The check of one game's players against its silver table."""

    store: Store
    game: str

    def finding(self) -> TableFinding:
        """Compare; skipped where there is nothing to compare with, with the reason."""
        gold = gold_table(self.game, "player_agg")
        if not has_log(self.store, gold):
            return self._skipped("there is no gold table yet")
        handle = open_table(self.store.location, gold)
        version = self._source_version(gold, handle.version())
        if version is None:
            return self._skipped("an erasure or another writer has changed gold since; its next refresh rebuilds it")
        try:
            silver = open_table(self.store.location, game_table(self.game), version)
            counted, expected = self._counted(gold, handle), _rows(silver)
            if counted != expected:
                expected -= self._test_events(silver)
        except (DeltaError, FileNotFoundError):
            return self._skipped(
                f"silver's version {version}, the source of gold, no longer exists; the next refresh rebuilds gold"
            )
        bounds = Bounds(expected, expected)
        status = CheckStatus.PASSED if bounds.hold(counted) else CheckStatus.FAILED
        return self._finding(status, observed=counted, expected=expected, bounds=bounds)

    def _skipped(self, detail: str) -> TableFinding:
        return self._finding(CheckStatus.SKIPPED, detail=detail)

    def _finding(self, status: CheckStatus, **details: object) -> TableFinding:
        return TableFinding(table=game_table(self.game), check=GOLD_CHECK, status=status, **details)  # type: ignore[arg-type] # checked by it

    def _source_version(self, gold: str, version: int) -> int | None:
        """The version of silver that gold's rows are of; None if not the gold job changed them last."""
        for _, actions in preceding_entries(self.store, gold, version):
            info = commit_info_of(actions)
            if _SOURCE in info:
                return int(json.loads(info[_SOURCE])["version"])
            if changes_rows(actions):
                return None
        return None

    def _counted(self, gold: str, handle: DeltaTable) -> float:
        rows = dataset(self.store.location, gold, schema_of(handle), live_files(handle)).to_table(["event_count"])
        return float(pc.sum(rows["event_count"]).as_py() or 0)

    def _test_events(self, silver: DeltaTable) -> float:
        files = live_files(silver, with_deleted_rows=True)
        table = game_table(self.game)
        if missing := missing_files(self.store, table, files):
            raise FileNotFoundError(f"{table}/{missing[0].relative_path}")
        rows = dataset(self.store.location, table, schema_of(silver), files)
        return float(rows.count_rows(filter=pc.field(_NAME) == _TEST_EVENT))


def _rows(handle: DeltaTable) -> float:
    """The rows of a version, by its log."""
    return float(pc.sum(pa.table(handle.get_add_actions(flatten=True))["num_records"]).as_py() or 0)
