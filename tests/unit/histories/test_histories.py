"""Whatever happens to a lakehouse, its figures are those of the acknowledged events, except the erased ones."""

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given

from gamelake.model.failpoints import Failpoint, Kill
from tests.unit.histories.events import ARCHERY, NEW_GAME, Play, Source
from tests.unit.histories.histories import HISTORIES, REPLAY_STEPS, run
from tests.unit.histories.operations import (
    AddGame,
    Backfill,
    DeployBadly,
    Erase,
    Meanwhile,
    Operation,
    RefreshGold,
    Replay,
    Restore,
    Send,
)
from tests.unit.properties import examples

_BINGO = Play(game=NEW_GAME)

# What failed, as short as it could be made, with the questions that were answered wrongly.
FOUND: dict[str, tuple[Sequence[Operation], Collection[str]]] = {
    "gold was refreshed between the erasure of silver and its own": (
        [Send([Play()]), RefreshGold(), Erase(0, at=Kill(Failpoint.AFTER_ERASED_TABLE, 4))],
        (),
    ),
    "a day without a known player": ([Send([Play(player=None)])], ["new_players"]),
    "a replayed event came again": ([Send([_BINGO]), AddGame(), Replay(), Send([], [0])], ()),
    "a replayed event came again in a file": (
        [Send([_BINGO]), AddGame(), Backfill(NEW_GAME), Send([], [0], source=Source.FILE)],
        (),
    ),
    "an event of a file was replayed and came again by Kafka": (
        [Send([_BINGO], source=Source.FILE), AddGame(), Replay(), Send([], [0])],
        (),
    ),
    "an event of a file was restored away and came by Kafka before a backfill": (
        [
            Send([Play()], source=Source.FILE),
            Send([Play(minute=5)], source=Source.FILE),
            Restore(1, Play().game),
            Send([], [1]),
            Backfill(),
        ],
        (),
    ),
    "an event that a backfill gave to the right game came again": (
        [DeployBadly([Play(game=ARCHERY)]), Backfill(), Send([], [0])],
        (),
    ),
    **{
        f"an event came again {after}its replay, {step}": (
            [
                Send([_BINGO]),
                Send([Play()]),
                AddGame(),
                Replay(Meanwhile([0], Kill(step), is_killed)),
                Send([], [0, 1]),
            ],
            (),
        )
        for step in REPLAY_STEPS
        for after, is_killed in (("during ", False), ("after a kill of ", True))
    },
    "a backfilled event came again meanwhile, in one of two rows": (
        [
            Send([_BINGO, Play(game=NEW_GAME, minute=1)]),
            AddGame(),
            Backfill(None, Meanwhile([0], Kill(Failpoint.AFTER_FILES))),
        ],
        (),
    ),
}


@examples(100, "HISTORIES_FACTOR")
@given(history=HISTORIES)
def test_all_figures_are_those_of_what_was_acknowledged_and_not_erased(history: Sequence[Operation]) -> None:
    run(history)


@pytest.mark.parametrize("name", FOUND)
def test_a_history_that_once_failed_passes(name: str) -> None:
    run(*FOUND[name])
