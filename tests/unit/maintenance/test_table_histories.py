"""After any sequence of maintenance jobs a table equals a plain list of rows, now and in every kept version."""

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gamelake.delta.appends import BatchTransaction, schema_of
from gamelake.delta.log.codec import entry_path, live_files
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import CommitOutcome, DeltaTables, open_table
from gamelake.ledger.clones import CloneError, CloneKind, Clones
from gamelake.ledger.replay_manifests import ReplayManifest
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.model.failpoints import Failpoints
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.cloning import Cloning
from gamelake.recovery.replay.runs import replay_run
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import RestoreError, TableHistory
from gamelake.scans.datasets import dataset
from gamelake.scans.player_rows import PlayerFilter
from tests.support.player_tables import SILVER, an_entry, append, store_in
from tests.unit.properties import examples

NAME, APPLICATION = SILVER.name, "query-0"
CLONE = f"clones/toy_{NAME.partition('/')[2]}"
TODAY = date(2026, 11, 22)
PLAYERS = st.sampled_from(["ann", "bob", "cid"])
ROWS = st.lists(PLAYERS, min_size=1, max_size=4)
NUMBER = st.integers(0, 2**16)
Rows = Counter[str]


class Histories(RuleBasedStateMachine):
    """A table of a stream, and the rows that each of its versions is to have."""

    @initialize(players=ROWS)
    def begin(self, players: list[str]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = store_in(Path(self.folder.name))
        self.tables = DeltaTables(self.store.location)
        self.versions: list[Rows] = []
        self.batches = self.kept_since = self.erased_at = 0
        self.cloned: Rows | None = None
        self.a_batch_comes(players)

    @rule(players=ROWS)
    def a_batch_comes(self, players: list[str]) -> None:
        append(self.tables, self.store, SILVER, self.batches, players)
        self.batches += 1
        self.versions.append((self.versions[-1] if self.versions else Rows()) + Rows(players))

    @rule(players=ROWS, number=NUMBER)
    def a_batch_comes_again(self, players: list[str], number: int) -> None:
        again = BatchTransaction(APPLICATION, number % self.batches)

        assert self.tables.append(an_entry(self.store, SILVER, players), again) is CommitOutcome.ALREADY_COMMITTED

    @rule(size=st.sampled_from([1_500, 10**6]))
    def small_files_are_compacted(self, size: int) -> None:
        compaction_rule = CompactionRule(target_bytes=size, hot_files=1, today=TODAY)

        done = TableCompaction(self.store.location, NAME, compaction_rule)()

        assert done.files_after <= done.files_before
        self._stays()

    @rule(player=PLAYERS)
    def a_player_is_erased(self, player: str) -> None:
        people = PlayerFilter(frozenset([player]))
        RowEraser(self.store, SILVER, people, f"run-{len(self.versions)}").erase()
        left = Rows({name: count for name, count in self.versions[-1].items() if name != player})
        if self._newest() >= len(self.versions):
            self.erased_at = self._newest()
        self._becomes(left)
        for clone in Clones(self.store).with_rows_of(people):
            assert self.cloned is not None
            assert self.cloned[player] > 0
            Clones(self.store).drop(clone)
            self.cloned = None

    @rule(number=NUMBER)
    def it_is_restored(self, number: int) -> None:
        version = number % len(self.versions)
        with maintenance_lease(self.store, NAME) as lease:
            if self._restored(version, lambda plan: plan.commit(lease)):
                self._becomes(self.versions[version])

    @rule(number=NUMBER, players=ROWS)
    def it_is_restored_while_a_batch_comes(self, number: int, players: list[str]) -> None:
        version, since = number % len(self.versions), self.versions[-1]
        with maintenance_lease(self.store, NAME) as lease:
            planned = TableRestore(TableHistory.read(self.store, NAME), version)
            self.a_batch_comes(players)
            with suppress(RestoreError):
                planned.commit(lease)
                self._becomes(self.versions[version] + (self.versions[-1] - since))
        self._stays()

    @rule(players=ROWS, is_killed=st.booleans())
    def rows_are_replayed(self, players: list[str], is_killed: bool) -> None:  # drawn by Hypothesis
        with replay_run(self.tables, Failpoints(None)) as run:
            found = ReplayManifest(number=run.number, tables=(an_entry(self.store, SILVER, players),))
            if is_killed:
                run.manifests.settle(found)
            else:
                run.settle(found)
        if is_killed:
            with replay_run(self.tables, Failpoints(None)):
                pass  # the next process finishes what was settled
        self._becomes(self.versions[-1] + Rows(players))

    @rule(players=ROWS)
    def a_batch_dies_before_its_commit(self, players: list[str]) -> None:
        an_entry(self.store, SILVER, players)

    @rule(number=NUMBER)
    def old_versions_are_vacuumed(self, number: int) -> None:
        oldest = self.kept_since + number % (len(self.versions) - self.kept_since)
        self._vacuum(oldest, TableHistory.read(self.store, NAME).commits[oldest].at)

    @rule()
    def all_versions_but_the_newest_are_vacuumed(self) -> None:
        self._vacuum(len(self.versions) - 1, datetime.now(UTC))

    @precondition(lambda self: self.cloned is None)
    @rule(number=NUMBER, kind=st.sampled_from(CloneKind))
    def it_is_cloned(self, number: int, kind: CloneKind) -> None:
        version = number % len(self.versions)
        cloning = Cloning(
            store=self.store, name="toy", sources=[NAME], moment=lambda h: h.at_version(version), kind=kind
        )
        try:
            cloning.make()
        except CloneError:
            assert version < max(self.erased_at, self.kept_since)
        else:
            assert version >= self.erased_at
            self.cloned = self.versions[version]

    @precondition(lambda self: self.cloned is not None)
    @rule()
    def its_clone_is_dropped(self) -> None:
        Clones(self.store).drop(Clones(self.store).named("toy"))
        self.cloned = None

    @invariant()
    def it_has_the_rows_of_the_list(self) -> None:
        if not hasattr(self, "versions"):
            return
        assert self._newest() == len(self.versions) - 1
        assert self._rows(NAME) == self.versions[-1]
        handle = open_table(self.store.location, NAME)
        assert handle.transaction_version(APPLICATION) == self.batches - 1
        if self.cloned is not None:
            assert self._rows(CLONE) == self.cloned

    def teardown(self) -> None:
        if not hasattr(self, "versions"):
            return
        self._check_all()
        log = TableLog.read(self.store, NAME)
        assert len({file.path for file in log.appended}) == len(log.appended)
        taken = [file.transaction for file in log.appended if file.transaction.startswith(APPLICATION)]
        numbers = [int(each.rpartition("/")[2]) for each in taken]
        assert numbers == sorted(set(numbers)) == list(range(self.batches))
        self.tables.__exit__(None, None, None)
        self.folder.cleanup()

    def _vacuum(self, oldest: int, since: datetime) -> None:
        vacuum = TableVacuum(self.store, NAME, since)
        vacuum.run()
        self.kept_since = oldest
        self._check_all()

    def _check_all(self) -> None:
        """Each version that is kept can be read, and is what it was."""
        for version in range(self.kept_since, len(self.versions)):
            assert self._rows(NAME, version) == self.versions[version]

    def _restored(self, version: int, commit: Callable[[TableRestore], object]) -> bool:
        planned = TableRestore(TableHistory.read(self.store, NAME), version)
        try:
            commit(planned)
        except RestoreError:
            assert version < self.kept_since
            return False
        return True

    def _newest(self) -> int:
        version = len(self.versions) - 1 if self.versions else 0
        while self.store.get(entry_path(NAME, version + 1)) is not None:
            version += 1
        return version

    def _becomes(self, rows: Rows) -> None:
        """Whatever versions there are by now have these rows."""
        self.versions += [rows] * (self._newest() + 1 - len(self.versions))
        assert self.versions[-1] == rows

    def _stays(self) -> None:
        self._becomes(self.versions[-1])

    def _rows(self, table: str, version: int | None = None) -> Rows:
        handle = open_table(self.store.location, table, version)
        schema = schema_of(handle)
        found = dataset(self.store.location, table, schema, live_files(handle)).to_table(columns=[SILVER.column])
        return Rows(found[SILVER.column].to_pylist())


def test_a_table_is_what_a_plain_list_says_after_any_history() -> None:
    run_state_machine_as_test(Histories, settings=settings(examples(35), stateful_step_count=25))
