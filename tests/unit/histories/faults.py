"""Faults that the platform had, each put back by undoing its fix."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gamelake.layers import silver
from gamelake.ledger import coordinates
from gamelake.ledger.holds import release
from gamelake.objects.store import Store
from gamelake.privacy import lake_erasure
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.privacy.lake_erasure import LakeErasure
from gamelake.quality.suites import holds
from gamelake.recovery.replay.late_batches import LateBatches
from gamelake.recovery.restore import RestoredTitles, TableRestore
from gamelake.recovery.stream_batches import StreamBatches
from gamelake.scans.player_rows import PlayerTable
from gamelake.serving.gold import definition
from gamelake.serving.gold.history import TablePosition
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed, RefreshOutcome
from gamelake.serving.gold.table import GoldTable
from gamelake.streaming.dedup.cross_source import ReplayedEvents
from gamelake.streaming.driver import batch_commits

Undo = Callable[[pytest.MonkeyPatch], None]


def empty_texts_are_kept(undone: pytest.MonkeyPatch) -> None:
    """A session that was not sent is the session ''."""
    undone.setattr(silver, "_EMPTY_IS_NULL", frozenset())


def versions_are_compared_as_texts(undone: pytest.MonkeyPatch) -> None:
    """1.9 is after 1.10."""
    undone.setattr(definition, "_VERSION_ORDER", "{0}")


def _search_nothing(undone: pytest.MonkeyPatch) -> None:
    """An erasure claims to be complete without a search."""
    undone.setattr(LakeErasure, "left", lambda _: ())


def records_are_found_by_their_key(undone: pytest.MonkeyPatch) -> None:
    """An erasure leaves the records of files in bronze, and a backfill brings them back."""
    _search_nothing(undone)
    undone.setattr(
        PlayerTable, "columns_of", lambda self, schema: [name for name in [self.column] if name in schema.names]
    )


def backfills_write_erased_rows(undone: pytest.MonkeyPatch) -> None:
    """The same, found by erased rows that appear again."""
    records_are_found_by_their_key(undone)
    undone.setattr(ErasureRecords, "erased_pseudonyms", lambda _: frozenset())


def gold_is_erased_before_silver(undone: pytest.MonkeyPatch) -> None:
    """A gold job that runs meanwhile brings the player back."""
    _search_nothing(undone)
    erase = LakeErasure.erase

    def once(self: LakeErasure) -> None:
        if not self.tables:
            erase(self)

    def order(tables: Any, key: Any = None) -> Any:  # noqa: ANN401 # as sorted
        return sorted(tables, key=key, reverse=key is not None)

    undone.setattr(lake_erasure, "_PASSES", 1)
    undone.setattr(lake_erasure, "sorted", order, raising=False)
    undone.setattr(LakeErasure, "erase", once)


def late_batches_bring_players_back(undone: pytest.MonkeyPatch) -> None:
    """A batch that was decided before an erasure is committed after it."""
    undone.setattr(batch_commits, "erase_again", lambda *_: None)


def titles_are_those_of_the_damaged_table(undone: pytest.MonkeyPatch) -> None:
    """A restore of a game removes the rows of another one, which a faulty contract wrote to its table."""
    titles = TableRestore.titles

    def have(self: RestoredTitles, titles: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.fill_null(pc.is_in(titles, value_set=pa.array(sorted(self.former), pa.string())), False)

    undone.setattr(TableRestore, "titles", lambda self: titles(replace(self, version=self.history.newest)))
    undone.setattr(RestoredTitles, "have", have)


def a_batch_is_any_streams(undone: pytest.MonkeyPatch) -> None:
    """A restore before a batch of a stream goes to the last batch of that number of any stream."""

    def all_applications(self: StreamBatches, *_: object) -> frozenset[str]:
        return frozenset(self.applications)

    undone.setattr(StreamBatches, "applications_with", all_applications)


def notifications_are_taken_for_records(undone: pytest.MonkeyPatch) -> None:
    """A replay after a restore takes the offsets of notifications of files for those of records."""
    undone.setattr(coordinates, "_of_notifications", coordinates._of_records)  # noqa: SLF001 # what is undone


def a_hold_ends_with_any_days_validation(undone: pytest.MonkeyPatch) -> None:
    """A day that passes releases the gold that another day holds back."""

    def release_all(store: Store, table: str, day: object = None) -> int:
        del day
        return release(store, table)

    undone.setattr(holds, "hold_of", lambda *_: _AnyHold())
    undone.setattr(holds, "release", release_all)


class _AnyHold:
    checks = ("a_check",)


def gold_keeps_the_version_that_it_was_made_of(undone: pytest.MonkeyPatch) -> None:
    """Vacuum deletes what gold was made of, if only compactions came since, and no check can be made."""

    def advanced(self: GoldRefresh, store: Store, gold: GoldTable, position: TablePosition) -> Refreshed:
        del store
        return Refreshed(
            table=self.table,
            outcome=RefreshOutcome.UNCHANGED,
            version=gold.handle.version(),
            source_version=position.version,
            source_entry=position.entry,
        )

    undone.setattr(GoldRefresh, "_advanced", advanced)


def streams_do_not_know_replayed_events(undone: pytest.MonkeyPatch) -> None:
    """An event that a replay has made a row becomes a second one when it comes again."""
    undone.setattr(ReplayedEvents, "taken", property(lambda _: ()))


def replays_write_what_late_batches_wrote(undone: pytest.MonkeyPatch) -> None:
    """An event that comes again while it is replayed becomes two rows."""
    undone.setattr(LateBatches, "left_out_of", lambda _, manifest: manifest)
