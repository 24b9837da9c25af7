"""Random histories, and how one is run: after each operation silver is compared, in the end and after erasures all."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st

from gamelake.model.failpoints import Failpoint, Kill
from tests.unit.histories.events import ARCHERY, DAYS, KART, NEW_GAME, Play, Source
from tests.unit.histories.figures import QUESTIONS, check_figures, check_silver
from tests.unit.histories.lakehouse import Lakehouse
from tests.unit.histories.model import Model
from tests.unit.histories.operations import (
    AddGame,
    Backfill,
    CleanLogs,
    Clone,
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
    refresh,
    settle,
)

_BATCH_STEPS = (
    Failpoint.BEFORE_FILES, Failpoint.AFTER_FILES, Failpoint.AFTER_SETTLE_RECORD, Failpoint.AFTER_MANIFEST,
    Failpoint.AFTER_TABLE_COMMIT, Failpoint.AFTER_COMMITS,
)  # fmt: skip
_ERASURE_STEPS = (
    Failpoint.AFTER_ERASURE_REQUEST, Failpoint.AFTER_FORGETTING, Failpoint.AFTER_ERASED_FILES,
    Failpoint.AFTER_ERASED_TABLE, Failpoint.AFTER_PURGE_PLAN, Failpoint.AFTER_PURGED_FILE,
)  # fmt: skip
REPLAY_STEPS = (
    Failpoint.AFTER_FILES,
    Failpoint.AFTER_MANIFEST,
    Failpoint.AFTER_REPLAY_NOTICE,
    Failpoint.AFTER_TABLE_COMMIT,
)
_ASKED_AT_ONCE = 3


def _steps(steps: Sequence[Failpoint]) -> st.SearchStrategy[Kill | None]:
    """None, or a step that is reached for the first, second, third or fourth time."""
    return st.none() | st.none() | st.builds(Kill, st.sampled_from(steps), st.integers(1, 4))


_GAMES = st.sampled_from([KART, ARCHERY, NEW_GAME])
_GAME_OR_ALL = st.none() | _GAMES
_NUMBERS = st.integers(0, 20)
_DAYS = st.integers(0, DAYS - 1)
_PLAYS = st.builds(
    Play,
    player=st.sampled_from([0, 1, 2, None]),
    game=_GAMES,
    name=st.sampled_from(["level_completed", "session_start", "purchase", "purchase", "smoke_test"]),
    minute=st.integers(0, DAYS * 1440 - 1),
    session=st.sampled_from(["1", "2", "", None]),
    platform=st.sampled_from(["ios", "android", None]),
    version=st.sampled_from(["1.9", "1.10", None]),
    amount=st.sampled_from([None, 0.5, 5.0]),
    level=st.sampled_from([None, 1]),
    schema=st.sampled_from([3, 1, 2]),
    has_id=st.sampled_from([True, True, True, False]),
)
_SENDS = st.builds(
    Send,
    st.lists(_PLAYS, max_size=6),
    st.lists(_NUMBERS, max_size=3),
    source=st.sampled_from(Source),
    crash=_steps(_BATCH_STEPS),
    is_left=st.sampled_from([False, False, False, True]),
)
_ERASURES = st.builds(
    Erase, st.integers(0, 2), _GAMES, is_purged=st.booleans(), at=_steps(_ERASURE_STEPS), is_killed=st.booleans()
)
_MEANWHILE = st.none() | st.builds(
    Meanwhile, st.lists(_NUMBERS, min_size=1, max_size=3), st.builds(Kill, st.sampled_from(REPLAY_STEPS)), st.booleans()
)
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    _SENDS,
    _SENDS,
    st.builds(Compact),
    st.builds(Vacuum),
    st.builds(CleanLogs),
    st.builds(Restore, _NUMBERS, _GAME_OR_ALL, st.booleans()),
    st.builds(RestoreBeforeBatch, _NUMBERS),
    st.builds(Backfill, _GAME_OR_ALL, _MEANWHILE),
    st.builds(Replay, _MEANWHILE),
    _ERASURES,
    st.builds(Clone, _GAMES),
    st.builds(Validate, _GAMES, _DAYS, st.booleans()),
    st.builds(DeployBadly, st.lists(_PLAYS, min_size=1, max_size=4)),
    st.builds(AddGame),
    st.builds(RefreshGold),
)
HISTORIES = st.lists(OPERATIONS, min_size=1, max_size=10)


def run(history: Sequence[Operation], questions: Collection[str] = ()) -> None:
    """Run a history on a new lakehouse, and compare it with the model.

    Args:
        history: its operations.
        questions: those that are asked in the end; some, if none is named.

    Raises:
        AssertionError: a table, a figure or an answer is another one; names it.
    """
    with TemporaryDirectory() as folder:
        lake, model = Lakehouse(Path(folder)), Model()
        try:
            for operation in history:
                operation(lake, model)
                if not model.is_crashed:
                    check_silver(lake, model)
                    model.mark(_now(), lake.batches())
                    if isinstance(operation, Erase):
                        refresh(lake, model)
                        check_figures(lake, model)
            settle(lake, model)
            refresh(lake, model)
            check_silver(lake, model)
            check_figures(lake, model, questions or asked(len(model.sent)))
        except Exception as error:
            error.add_note(f"history: {history!r}")
            raise
        finally:
            lake.stop()


def _now() -> datetime:
    """The present time, which no later commit has: these have whole milliseconds."""
    moment = datetime.now(UTC)
    while datetime.now(UTC) - moment < timedelta(milliseconds=2):
        pass
    return moment


def asked(number: int) -> Sequence[str]:
    """Some of the questions, others for another number: all together take longer than a history."""
    return sorted(QUESTIONS)[number % len(QUESTIONS) :][:_ASKED_AT_ONCE]
