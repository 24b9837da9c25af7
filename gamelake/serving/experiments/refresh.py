"""Brings the tables of experiments up to date: exposures by changed days, the others by changed experiments.

The statistics of an experiment are computed again if its exposures, its days in gold's player days, or its declaration
have changed. They read the experiment's own days, at most 92, and the 14 days before, so that the cost doesn't grow
with history.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
from deltalake.exceptions import TableNotFoundError
from obstore.exceptions import BaseError

from gamelake.contract.aggregates import AggregateSpec
from gamelake.contract.experiments import (
    EXPERIMENTS_FILE,
    PLAYER_DAYS,
    ExperimentSpec,
    Outcome,
    load_experiments,
    outcomes,
    title_of,
)
from gamelake.contract.games import GamesContract, load_games
from gamelake.contract.metrics import METRICS_FILE, MetricsContract, load_metrics
from gamelake.delta.appends import schema_of
from gamelake.delta.commits import commit_with_retry
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry
from gamelake.delta.tables import open_table
from gamelake.model.errors import StoreError
from gamelake.model.logs import event_logger
from gamelake.model.naming import GOLD
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset, missing_files
from gamelake.scans.sql_engine import Engine, engine, without_zones
from gamelake.serving.experiments.exposures import Exposures
from gamelake.serving.experiments.statements import DAYS_BEFORE, statistics_sql
from gamelake.serving.experiments.tables import RESULTS, STATISTICS, exposure_table
from gamelake.serving.experiments.verdicts import results
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.definition import AggregateDefinition, define
from gamelake.serving.gold.runs import runs_of
from gamelake.serving.kpis.table_files import GENERATION_NOTE, TableFilesOf

log = event_logger(__name__)

_ATTEMPTS = 10
# Increase this if results must be computed again for another reason than new columns or SQL.
_REVISION = 1
_STATES_NOTE = "gamelake.states"
_EXPOSURE_KEYS = ("event_date", "game", "experiment", "variant", "gamer_id", "exposed_at")


class ExperimentsRefreshed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a refresh.

    Attributes:
        days: the number of days of games whose exposures were computed.
        experiments: the experiments whose statistics were computed.
        failed: the experiments whose exposures or statistics could not be computed.
    """

    days: int = 0
    experiments: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExperimentContracts:
    """The contracts that experiments are computed from.

    Attributes:
        games: the games contract.
        experiments: the experiments.
        outcomes: the column of each metric in gold's player days.
        player_days: the aggregate of player days.
    """

    games: GamesContract
    experiments: Sequence[ExperimentSpec]
    outcomes: Mapping[str, Outcome]
    player_days: AggregateDefinition


def load_contracts(games_file: Path) -> ExperimentContracts | None:
    """Read the contracts; return None without an experiment.

    Args:
        games_file: the games contract; the other contracts are in the same folder.

    Raises:
        ContractError: a contract is wrong; names file and line.
    """
    file = games_file.with_name(EXPERIMENTS_FILE)
    if not file.exists():
        return None
    games, metrics = load_games(games_file), load_metrics(games_file.with_name(METRICS_FILE))
    return _contracts(games_file, games, metrics, load_experiments(file, games, metrics).experiments)


def _contracts(
    games_file: Path, games: GamesContract, metrics: MetricsContract, experiments: Sequence[ExperimentSpec]
) -> ExperimentContracts | None:
    aggregates = load_gold(games_file).aggregates
    used = outcomes(games, metrics)
    found = [define(_with_outcomes(each, used)) for each in aggregates if each.name == PLAYER_DAYS]
    if not found or not experiments:
        return None
    return ExperimentContracts(games, experiments, used, found[0])


def _with_outcomes(aggregate: AggregateSpec, used: Mapping[str, Outcome]) -> AggregateSpec:
    """Return an aggregate with the columns that are outcomes; its other columns describe the player."""
    kept = {each.column for each in used.values()}
    columns = {name: column for name, column in aggregate.columns.items() if name in kept}
    return msgspec.structs.replace(aggregate, columns=columns)


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(slots=True)
class ExperimentRefresh:
    """Refreshes the tables of experiments of one lakehouse.

    Attributes:
        store: the lakehouse.
        contracts: the contracts.
        today: returns the day of the platform's clock, in UTC; later days have no statistics.
        progress: is called after each experiment.
        exposures: the table of exposures.
        statistics: the table of statistics.
        results: the table of results; its commits precede those of the statistics, which have the states.
    """

    store: Store
    contracts: ExperimentContracts
    today: Callable[[], date] = _today
    progress: Callable[[], None] = lambda: None
    exposures: Exposures = field(init=False)
    statistics: TableFilesOf = field(init=False)
    results: TableFilesOf = field(init=False)

    def __post_init__(self) -> None:
        """Open nothing yet."""
        definition = self.contracts.player_days
        meanings = definition.spec.columns
        table = TableFilesOf(self.store, exposure_table({name: name.replace("_", " ") for name in meanings}))
        self.exposures = Exposures(table, definition)
        self.statistics = TableFilesOf(self.store, STATISTICS)
        self.results = TableFilesOf(self.store, RESULTS)

    def __call__(self) -> ExperimentsRefreshed:
        """Refresh the tables.

        Raises:
            StoreError: another writer committed first at every attempt.
        """
        failure = StoreError("gold/experiment_* has another writer too: stop it; only the gold job may write here")
        with engine(threads=2) as sql:
            days = commit_with_retry(
                self.exposures.table.path,
                _ATTEMPTS,
                lambda: self.exposures.refresh(sql, self.contracts.experiments),
                failure,
            )
            self.exposures.table.open()
            done = commit_with_retry(STATISTICS.path, _ATTEMPTS, lambda: self._refresh_statistics(sql), failure)
        return msgspec.structs.replace(done, days=days)

    def _refresh_statistics(self, sql: Engine) -> ExperimentsRefreshed:
        states = self._open()
        failed = [each.name for each in self.contracts.experiments if each.game in self.exposures.failed]
        written: dict[str, list[DataFile]] = {table.path: [] for table in self._computed}
        computed = list[str]()
        for experiment in self._begun(failed):
            try:
                step = _Statistics(self, experiment, sql)
                if states.get(experiment.name) == (state := step.state()):
                    continue
                files = step.compute()
            except (BaseError, OSError):
                raise
            except Exception as error:
                failed.append(experiment.name)
                log.exception(
                    "experiment_failed",
                    experiment=experiment.name,
                    error=f"{type(error).__name__}: {error}",
                    action="keeps the experiment's former statistics; the next run tries again",
                )
                continue
            for path, file in files.items():
                written[path].append(file)
            states[experiment.name] = state
            computed.append(experiment.name)
            self.progress()
        if computed:
            self._commit(written, computed, states)
        return ExperimentsRefreshed(experiments=tuple(computed), failed=tuple(failed))

    @property
    def _computed(self) -> tuple[TableFilesOf, TableFilesOf]:
        """The tables that follow from exposures, in the order of their commits."""
        return self.results, self.statistics

    def _open(self) -> dict[str, str]:
        """Open the tables, and return the state that each experiment was computed from."""
        for table in self._computed:
            table.open()
        notes = [table.notes() for table in self._computed]
        if all(each.get(GENERATION_NOTE) == _FINGERPRINT for each in notes):
            return msgspec.json.decode(notes[-1][_STATES_NOTE], type=dict[str, str])
        for table in self._computed:
            table.make_void()
        return {}

    def _commit(
        self, written: Mapping[str, list[DataFile]], experiments: Sequence[str], states: Mapping[str, str]
    ) -> None:
        """Commit the tables; the last one has the states, so that a fault in between computes the experiments again."""
        notes = {GENERATION_NOTE: _FINGERPRINT, _STATES_NOTE: msgspec.json.encode(states).decode()}
        for table in self._computed:
            removed = [file for file in table.files if file.partition["experiment"] in experiments]
            table.commit(written[table.path], removed, notes)

    def _begun(self, failed: Sequence[str]) -> list[ExperimentSpec]:
        today = self.today()
        return [each for each in self.contracts.experiments if each.start <= today and each.name not in failed]


@dataclass(slots=True)
class _Statistics:
    """The statistics of one experiment.

    Attributes:
        job: the refresh.
        experiment: the experiment.
        sql: the engine.
    """

    job: ExperimentRefresh
    experiment: ExperimentSpec
    sql: Engine
    _player_days: list[FileEntry] = field(init=False)
    _schema: pa.Schema | None = field(init=False)

    def __post_init__(self) -> None:
        """Find the files of gold's player days that may have the experiment's days."""
        first, last = self.experiment.start - timedelta(days=DAYS_BEFORE), self._last
        try:
            handle = open_table(self.job.store.location, f"{GOLD}/{PLAYER_DAYS}")
        except TableNotFoundError:
            self._player_days, self._schema = [], None
            return
        self._schema = schema_of(handle)
        self._player_days = [
            run.file
            for run in runs_of(handle, ("event_date",))
            if run.bounds is None or (run.bounds[0][:1] <= ((False, last),) and run.bounds[1][:1] >= ((False, first),))
        ]

    @property
    def _last(self) -> date:
        return min(self.job.today(), self.experiment.last_day)

    def state(self) -> str:
        """Return a hash of everything that the statistics depend on."""
        files = [*self._player_days, *self.job.exposures.files_of(self.experiment.game)]
        paths = sorted(file.path for file in files)
        text = repr([msgspec.json.encode(self.experiment), str(self._last), paths])
        return hashlib.sha256(text.encode()).hexdigest()

    def compute(self) -> dict[str, DataFile]:
        """Compute the statistics and the results of all metrics, and write them as files that no commit names yet.

        Returns:
            One file by the path of its table.

        Raises:
            FileNotFoundError: a file of gold is deleted already.
        """
        experiment, used = self.experiment, self.job.contracts.outcomes
        columns = list(dict.fromkeys(used[metric].column for metric in experiment.metrics))
        self.job.exposures.give(self.sql, experiment.game, [*_EXPOSURE_KEYS, *columns])
        self._give_player_days(columns)
        parts = [self._rows(metric, used[metric]) for metric in experiment.metrics]
        rows = pa.concat_tables(parts)
        partition = {"game": experiment.game, "experiment": experiment.name}
        stored = pa.schema([each for each in STATISTICS.schema if each.name not in STATISTICS.partition_by])
        return {
            RESULTS.path: self.job.results.write(results(experiment, rows), partition),
            STATISTICS.path: self.job.statistics.write(rows.select(stored.names).cast(stored), partition),
        }

    def _rows(self, metric: str, outcome: Outcome) -> pa.Table:
        return self.sql.table(statistics_sql(self.experiment, metric, outcome, self._last))

    def _give_player_days(self, columns: Sequence[str]) -> None:
        wanted = ["event_date", "game_name", "gamer_id", *columns]
        if self._schema is None or not self._player_days:
            empty = pa.schema([("event_date", pa.date32()), ("game_name", pa.string()), ("gamer_id", pa.string())])
            for name in columns:
                empty = empty.append(pa.field(name, pa.decimal128(38, 6)))
            self.sql.give("all_days", empty.empty_table())
        else:
            path, store = f"{GOLD}/{PLAYER_DAYS}", self.job.store
            if missing := missing_files(store, path, self._player_days):
                raise FileNotFoundError(f"{path}/{missing[0].relative_path} is gone")
            schema = pa.schema([without_zones(self._schema).field(name) for name in wanted])
            self.sql.give("all_days", dataset(store.location, path, schema, self._player_days))
        titles = title_of(self.job.contracts.games, self.experiment).match
        self.sql.give("titles", pa.table({"game_name": pa.array(titles, pa.string())}))


def _fingerprint() -> str:
    example = msgspec.convert(
        {
            "name": "e",
            "game": "g",
            "description": "d",
            "start": "2026-01-01",
            "primary": "m",
            "variants": [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5}],
        },
        ExperimentSpec,
    )
    text = [statistics_sql(example, "m", Outcome("c", is_share=share), date.max) for share in (False, True)]
    schemas = [table.schema.to_string() for table in (STATISTICS, RESULTS)]
    return hashlib.sha256(repr([_REVISION, text, schemas]).encode()).hexdigest()[:16]


_FINGERPRINT = _fingerprint()
