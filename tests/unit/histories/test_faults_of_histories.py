"""Histories find known faults again once their fixes are taken out."""

from collections.abc import Sequence

import pytest

from gamelake.model.failpoints import Failpoint, Kill
from tests.unit.histories import faults
from tests.unit.histories.events import ARCHERY, KART, NEW_GAME, Play, Source
from tests.unit.histories.faults import Undo
from tests.unit.histories.histories import run
from tests.unit.histories.operations import (
    AddGame,
    Backfill,
    Compact,
    DeployBadly,
    Erase,
    Meanwhile,
    Operation,
    RefreshGold,
    Replay,
    Restore,
    RestoreBeforeBatch,
    Send,
    Vacuum,
    Validate,
)

_PLAY, _LATER = Play(), Play(minute=1)
_NEW = Play(game=NEW_GAME)
_BY_FILE = Send([_PLAY], source=Source.FILE)
# What random histories shrink to.
SHORTEST: dict[Undo, tuple[Sequence[Operation], str]] = {
    faults.empty_texts_are_kept: ([Send([Play(session="")], source=Source.FILE)], "silver/"),
    faults.versions_are_compared_as_texts: (
        [Send([Play(version="1.10"), Play(version="1.9", minute=1)])],
        "gold.all_sessions",
    ),
    faults.records_are_found_by_their_key: ([_BY_FILE, Erase(0, is_purged=True)], "the erased player is in"),
    faults.backfills_write_erased_rows: ([_BY_FILE, Erase(0), Backfill()], "silver/events"),
    faults.gold_is_erased_before_silver: (
        [
            Send([Play(player=1)]),
            RefreshGold(),
            Send([_PLAY]),
            Erase(0, is_purged=True, at=Kill(Failpoint.AFTER_ERASED_TABLE, 1)),
        ],
        "the erased player is in",
    ),
    faults.late_batches_bring_players_back: (
        [Send([_PLAY], crash=Kill(Failpoint.AFTER_MANIFEST)), Erase(0)],
        "silver/",
    ),
    faults.titles_are_those_of_the_damaged_table: (
        [Send([_PLAY]), DeployBadly([Play(game=ARCHERY)]), Restore(0, KART)],
        "silver/events",
    ),
    faults.a_batch_is_any_streams: (
        [RefreshGold(), Send([_PLAY]), Send([_LATER], source=Source.FILE), RestoreBeforeBatch(0)],
        "silver/",
    ),
    faults.notifications_are_taken_for_records: ([Send([_LATER]), _BY_FILE, Restore(0, is_replayed=True)], "silver/"),
    faults.a_hold_ends_with_any_days_validation: (
        [Send([_PLAY]), Validate(KART, 0), Validate(KART, 1, is_passed=True)],
        "held back are",
    ),
    faults.gold_keeps_the_version_that_it_was_made_of: (
        [*[Send([Play(name="smoke_test")])] * 4, RefreshGold(), Compact(), RefreshGold(), Vacuum()],
        "gold_counts_silver",
    ),
    faults.streams_do_not_know_replayed_events: ([Send([_NEW]), AddGame(), Replay(), Send([], [0])], "silver/"),
    faults.replays_write_what_late_batches_wrote: (
        [Send([_NEW]), AddGame(), Replay(Meanwhile([0], Kill(Failpoint.AFTER_MANIFEST)))],
        "silver/",
    ),
}


@pytest.mark.parametrize("undo", SHORTEST, ids=lambda undo: undo.__name__)
def test_a_short_history_finds_a_fault_again_and_passes_without_it(undo: Undo, monkeypatch: pytest.MonkeyPatch) -> None:
    history, found = SHORTEST[undo]
    run(history)

    undo(monkeypatch)
    with pytest.raises(AssertionError, match=found):
        run(history)
