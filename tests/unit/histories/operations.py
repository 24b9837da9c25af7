"""The operations of histories: what each does to the lakehouse, by the job that does it, and to the model."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from gamelake.delta.listing import own_tables, table_paths
from gamelake.maintenance.log_cleanup import LogCleanup
from gamelake.model.failpoints import Failpoint, Kill
from gamelake.quality.check_findings import Bounds, CheckStatus
from gamelake.quality.suites.expectations import Expectation, SuiteName, ValidationSuite, Weight
from gamelake.quality.suites.holds import GoldHolds
from gamelake.quality.suites.validations import ExpectationResult
from gamelake.serving.gold.contract import load_gold
from jobs.clean_logs import needed_versions
from tests.unit.histories.events import ARCHERY, BEGINNING, GAMES, KART, NEW_GAME, Play, Source, table_of
from tests.unit.histories.lakehouse import STREAMS, CrashError, Lakehouse, crash, interrupted
from tests.unit.histories.model import SILVER, Model

_CHECK = Expectation(name="a_check", bounds=Bounds(0, 0), weight=Weight.CRITICAL, expect="no failure")


class Operation(Protocol):
    """One step of a history."""

    def __call__(self, lake: Lakehouse, model: Model, /) -> None:
        """Do it."""


@dataclass(frozen=True, slots=True)
class Send:
    """Events arrive through Kafka or in a file: new ones, and some that were sent before.

    Attributes:
        again: which of the events that were sent before, by any numbers.
        crash: where the process that ingests them dies; the next operation that needs it starts it again.
        is_left: whether they wait in the topic until the next operation that ingests.
    """

    plays: Sequence[Play]
    again: Sequence[int] = ()
    source: Source = Source.KAFKA
    crash: Kill | None = None
    is_left: bool = False

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Send and ingest."""
        events = [*model.new(self.plays), *model.again(self.again)]
        if events:
            (lake.send if self.source is Source.KAFKA else lake.drop_file)(*events)
            model.acknowledge(self.source, events)
        if self.crash is not None:
            lake.ingest_and_crash(self.crash)
            model.is_crashed = model.has_leftovers = True
        elif self.is_left:
            model.left |= {event.number for event in events}
        else:
            settle(lake, model)


def settle(lake: Lakehouse, model: Model) -> None:
    """Have the streams ingest all that waits."""
    if model.waiting or model.is_crashed or model.must_sweep:
        lake.ingest()
        if model.must_sweep:
            sweep(lake, model)
        model.ingest()


@dataclass(frozen=True, slots=True)
class Compact:
    """Small files are compacted."""

    scope: str = "weekly"

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run the job."""
        del model
        lake.run("compact", "--scope", self.scope)


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Files of older versions are deleted, as if their retention was over."""

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run the job."""
        forced = [argument for table in table_paths(lake.store) for argument in ("--force", table)]
        if forced:
            lake.run("vacuum", "--retain-hours", "1e-9", "--yes", *forced)
            model.moments.clear()
            model.has_leftovers = model.is_crashed


@dataclass(frozen=True, slots=True)
class CleanLogs:
    """Log entries and manifests are deleted, as if their retention was over."""

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Do as the job does, which refuses so short a retention."""
        now = datetime.now(UTC)
        needed = needed_versions(lake.store, load_gold(lake.games_file))
        cleanup = LogCleanup(store=lake.store, since=now, compact_before=now, needed_from=needed)
        for plan in cleanup.plans(own_tables(lake.store)):
            plan.carry_out(lake.store)
        model.moments.clear()


@dataclass(frozen=True, slots=True)
class Restore:
    """Tables go back to an earlier time; then erasures are carried out again, as docs/privacy.md says.

    Attributes:
        moment: which time, by any number.
        game: the game to restore; None for all silver tables.
        is_replayed: whether what was removed is decoded again.
    """

    moment: int
    game: str | None = None
    is_replayed: bool = False

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run the job."""
        settle(lake, model)
        tables = sorted(model.tables) if self.game is None else sorted({SILVER, table_of(self.game)})
        moments = [each for each in model.moments if set(tables) & set(each.tables)]
        if not moments or not set(tables) <= set(model.tables):
            return
        moment = moments[self.moment % len(moments)]
        # Rows that another replay wrote since then can't be replayed with their batches, and the job refuses.
        replay = ["--replay"] if self.is_replayed and moment.replays == model.replays else []
        what = tables if self.game is None else ["--game", GAMES[self.game]]
        lake.run("restore", *what, "--time", moment.at.isoformat(), "--yes", *replay)
        if self.game is None:
            model.restore(moment, tables)
        else:
            model.restore_game(moment, self.game)
        if replay:
            model.replay_since(moment, tables)
        sweep(lake, model)


@dataclass(frozen=True, slots=True)
class RestoreBeforeBatch:
    """The tables that a batch has written to go back to the state before it; which batch, by any number."""

    batch: int

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run the job."""
        settle(lake, model)
        batches = model.batches()
        if not batches:
            return
        moment, source, tables = batches[self.batch % len(batches)]
        batch = str(moment.batches[source])
        lake.run("restore", *sorted(tables), "--before-batch", batch, "--stream", STREAMS[source], "--yes")
        model.restore(moment, tables)
        sweep(lake, model)


def sweep(lake: Lakehouse, model: Model) -> None:
    """Carry out all erasures again."""
    if model.erased:
        lake.run("forget_player", "--sweep", "--also-rows", "--yes")


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Events that were sent before come again by Kafka while a replay or a backfill runs.

    Attributes:
        again: which of the events, by any numbers.
        at: the step of the job at which they are ingested; if it does not come to it, they are not sent.
        is_killed: whether the job is killed there, and runs again after they were ingested.
    """

    again: Sequence[int]
    at: Kill
    is_killed: bool = False

    def run(self, lake: Lakehouse, model: Model, replay: Callable[[], object], done: Callable[[], None]) -> None:
        """Run a replay, and apply it to the model."""
        events = model.again(self.again)

        def ingest() -> None:
            lake.send(*events)
            model.acknowledge(Source.KAFKA, events)
            lake.ingest()

        with interrupted(self.at, crash if self.is_killed else ingest), suppress(CrashError):
            replay()
        if self.is_killed:
            ingest()
            replay()
        if self.at.step in _BEFORE_NOTICE:
            model.ingest()
            done()
        else:
            done()
            model.ingest()


# Batches that begin up to here do not know the replay, so their rows count.
_BEFORE_NOTICE = frozenset({Failpoint.AFTER_FILES, Failpoint.AFTER_MANIFEST})


@dataclass(frozen=True, slots=True)
class Backfill:
    """Rows that bronze has and silver lacks are written; of one game, or of all."""

    game: str | None = None
    meanwhile: Meanwhile | None = None

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run the job."""
        settle(lake, model)
        if model.arrived and self.game in {None, *model.games}:
            targets = [] if self.game is None else [table_of(self.game)]
            arrived = [*model.arrivals]
            _replay(
                lake,
                model,
                self.meanwhile,
                lambda: lake.run("backfill", *targets),
                lambda: model.backfill(arrived, targets),
            )


@dataclass(frozen=True, slots=True)
class Replay:
    """Dead letters are decoded again."""

    meanwhile: Meanwhile | None = None

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run the job."""
        settle(lake, model)
        _replay(lake, model, self.meanwhile, lambda: lake.run("replay"), model.replay_dead_letters)


def _replay(
    lake: Lakehouse, model: Model, meanwhile: Meanwhile | None, replay: Callable[[], object], done: Callable[[], None]
) -> None:
    if meanwhile is not None:
        meanwhile.run(lake, model, replay, done)
    else:
        replay()
        done()


@dataclass(frozen=True, slots=True)
class Erase:
    """A player is erased, in the tables too; with `is_purged` in old files, too.

    Attributes:
        at: a step of the job at which it is interrupted.
        is_killed: whether it is killed there, and runs again; else the gold job runs meanwhile.
    """

    player: int
    game: str = KART
    is_purged: bool = False
    at: Kill | None = None
    is_killed: bool = False

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run the job."""
        player = model.key_of(self.game, self.player)
        if self.game not in model.games:
            return
        lake.know(player)
        reach = ["--purge", "--grace-seconds", "0", "--force"] if self.is_purged else ["--also-rows"]
        arguments = ["--game", player.game, "--pseudonym", player.pseudonym, *reach, "--yes"]
        with interrupted(self.at, crash if self.is_killed else lake.refresh_figures), suppress(CrashError):
            lake.run("forget_player", *arguments)
        if self.is_killed and self.at is not None:
            lake.refresh_figures()
            lake.run("forget_player", *arguments)
        model.erase(self.game, self.player)
        if self.is_purged:
            # The files of earlier versions are gone.
            model.moments.clear()
            if not model.has_leftovers:
                found = lake.files_with(player.pseudonym)
                assert not found, f"the erased player is in {found}"


@dataclass(frozen=True, slots=True)
class Clone:
    """Tables of a game are cloned."""

    game: str = KART

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run the job."""
        if model.is_crashed or table_of(self.game) not in model.tables:
            return
        name = f"c{len(model.clones)}_{len(model.erased)}"
        lake.run("clone", name, "--game", GAMES[self.game])
        table = table_of(self.game)
        model.clones[f"clones/{name}_{table.partition('/')[2]}"] = dict(model.tables[table])


@dataclass(frozen=True, slots=True)
class Validate:
    """A day of a game is validated: a failure holds the game's gold back until the same day passes."""

    game: str = KART
    day: int = 0
    is_passed: bool = False

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Do as the validation does with its results."""
        day = (BEGINNING + timedelta(days=self.day)).date()
        suite = ValidationSuite(
            name=SuiteName.TABLES, game=GAMES[self.game], table=table_of(self.game), expected=(_CHECK,)
        )
        status = CheckStatus.PASSED if self.is_passed else CheckStatus.FAILED
        result = ExpectationResult(suite=suite, expected=_CHECK, status=status)
        GoldHolds(store=lake.store, day=day, now=datetime.now(UTC), by="validation").settle(GAMES[self.game], [result])
        if self.is_passed:
            model.held.discard((self.game, self.day))
        else:
            model.held.add((self.game, self.day))


@dataclass(frozen=True, slots=True)
class AddGame:
    """A game is added to the contract."""

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Change the contract, and restart the streams."""
        if NEW_GAME not in model.games:
            settle(lake, model)
            lake.set_titles(**{GAMES[NEW_GAME]: [NEW_GAME]})
            model.games.add(NEW_GAME)


@dataclass(frozen=True, slots=True)
class DeployBadly:
    """A faulty contract gives the events of one game to another one, for a batch."""

    plays: Sequence[Play]

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Change the contract, send events, and change it back."""
        settle(lake, model)
        first = len(model.sent)
        lake.set_titles(**{GAMES[KART]: [KART, ARCHERY], GAMES[ARCHERY]: ["No Game"]})
        model.is_contract_faulty = True
        Send(self.plays)(lake, model)
        model.is_contract_faulty = False
        lake.set_titles(**{GAMES[KART]: [KART], GAMES[ARCHERY]: [ARCHERY]})
        model.misrouted |= {event.number for event in model.sent[first:]}


@dataclass(frozen=True, slots=True)
class RefreshGold:
    """The gold job runs."""

    def __call__(self, lake: Lakehouse, model: Model) -> None:
        """Run it."""
        refresh(lake, model)


# Gold tables of fields that the events of these histories lack: never made, but held back as all others.
OF_SOME_FIELDS = ("economy_daily", "version_stability", "load_times")


def refresh(lake: Lakehouse, model: Model) -> None:
    """Run the gold job; it passes over the tables that are held back, and no others."""
    held = lake.refresh_figures()
    games = {GAMES[title] for title, _ in model.held if table_of(title) in model.tables}
    of_games = {f"gold/{game}_{name}" for game in games for name in ("player_agg", "daily_agg", *OF_SOME_FIELDS)}
    assert model.is_crashed or held == of_games, f"held back are {sorted(held)}, not {sorted(of_games)}"
