"""Keeps the table of exposures up to date: computes the changed days of each game that has experiments."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.contract.experiments import ExperimentSpec
from gamelake.contract.time_zones import DEFAULT_ZONE, TimeZone
from gamelake.delta.appends import schema_of
from gamelake.delta.commits import CommitConflictError
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry, live_files
from gamelake.delta.tables import open_table
from gamelake.model.errors import ContractError
from gamelake.model.logs import event_logger
from gamelake.model.naming import game_table
from gamelake.scans.datasets import dataset, missing_files
from gamelake.scans.sql_engine import Engine, without_zones
from gamelake.serving.experiments.statements import events_of_day_sql, exposures_sql
from gamelake.serving.experiments.tables import exposure_table
from gamelake.serving.gold.definition import AggregateDefinition
from gamelake.serving.gold.history import TablePosition, changes_since, day_of, position_at
from gamelake.serving.kpis.table_files import GENERATION_NOTE, TableFilesOf

log = event_logger(__name__)

_POSITIONS_NOTE = "gamelake.experiments"
_READS = frozenset({"event_date", "event_time", "gamer_id", "exposure"})


class GamePosition(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a game that the exposures match.

    Attributes:
        silver: the version of the game's silver table.
        days: the first and the last day of each experiment; if they change, all days are computed again.
        zone: the rules of the game's time zone, "" for UTC; if they change, all days are computed again.
    """

    silver: TablePosition
    days: tuple[tuple[date, date], ...]
    zone: str = ""


@dataclass(slots=True)
class Exposures:
    """The table of exposures of one lakehouse.

    Attributes:
        table: the table.
        definition: the aggregate of player days, whose columns are the outcomes.
        zones: the time zone of each game, in which the table has its days; games without one are in UTC.
        failed: the games whose exposures could not be computed.
    """

    table: TableFilesOf
    definition: AggregateDefinition
    zones: Mapping[str, TimeZone] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    _positions: dict[str, GamePosition] = field(default_factory=dict)
    _written: list[DataFile] = field(default_factory=list)
    _removed: list[FileEntry] = field(default_factory=list)

    def _sql(self, events: str) -> str:
        return exposures_sql(self.definition.safe_columns, events)

    @property
    def _fingerprint(self) -> str:
        text = f"{self._sql('events')} {exposure_table(self.definition.columns).schema}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def refresh(self, sql: Engine, experiments: Sequence[ExperimentSpec]) -> int:
        """Compute the changed days of each game, and commit them. If one game fails, the others are still computed.

        Args:
            sql: the engine.
            experiments: all experiments.

        Returns:
            The number of days that were computed.

        Raises:
            CommitConflictError: another writer, such as an erasure, has committed since the table was opened.
        """
        before = self._open()
        count = 0
        for game in sorted({each.game for each in experiments}):
            days = tuple(sorted((each.start, each.last_day) for each in experiments if each.game == game))
            try:
                count += self._refresh_game(sql, game, days)
            except (OSError, CommitConflictError):
                raise
            except Exception as error:
                self.failed.add(game)
                log.exception(
                    "exposures_failed",
                    game=game,
                    error=f"{type(error).__name__}: {error}",
                    action="keeps the game's former exposures; the next run tries again",
                )
        if self._positions != before or self._written or self._removed:
            notes = {
                GENERATION_NOTE: self._fingerprint,
                _POSITIONS_NOTE: msgspec.json.encode(self._positions).decode(),
            }
            self.table.commit(self._written, self._removed, notes)
        return count

    def files_of(self, game: str) -> list[FileEntry]:
        """Return the files with a game's exposures, in the version that is open."""
        return [file for file in self.table.files if file.partition["game"] == game]

    def give(self, sql: Engine, game: str, columns: Sequence[str]) -> None:
        """Register a game's exposures as the relation `exposures`.

        Raises:
            FileNotFoundError: a file is deleted already.
        """
        schema = without_zones(self.table.definition.schema)
        kept = pa.schema([schema.field(name) for name in columns])
        sql.give("exposures", existing(self.table, kept, self.files_of(game)))

    def _open(self) -> Mapping[str, GamePosition]:
        self.failed.clear()
        self._written, self._removed = [], []
        self.table.open()
        notes = self.table.notes()
        if notes.get(GENERATION_NOTE) == self._fingerprint:
            self._positions = msgspec.json.decode(notes[_POSITIONS_NOTE], type=dict[str, GamePosition])
        else:
            self._positions = {}
            self.table.make_void()
        return dict(self._positions)

    def _refresh_game(self, sql: Engine, game: str, windows: tuple[tuple[date, date], ...]) -> int:
        store, path, zone = self.table.store, game_table(game), self._zone(game)
        rules = "" if zone.name == DEFAULT_ZONE else zone.rules
        known = self._positions.get(game)
        follows = known is not None and (known.days, known.zone) == (windows, rules)
        # Read the changes before the table: a day of a version in between is then computed twice, but never missed.
        changes = changes_since(store, path, known.silver) if known is not None and follows else None
        try:
            handle = open_table(store.location, path)
        except TableNotFoundError:
            return 0
        files = [file for file in live_files(handle) if _days_within(day_of(file), windows, zone)]
        old = self.files_of(game)
        if changes is None:
            position = position_at(store, path, handle.version(), handle.schema().to_json())
            changed = {day_of(file) for file in files}
            days = {day for file in old if (day := day_of(file)) is not None}
        else:
            position, changed, days = changes.position, set(changes.days), set[date]()
        days |= {day for utc_day in changed for day in _days_within(utc_day, windows, zone)}
        self._written += list(self._computed(sql, game, handle, files, days))
        self._removed += [file for file in old if day_of(file) in days]
        if position is not None:
            self._positions[game] = GamePosition(silver=position, days=windows, zone=rules)
        return len(days)

    def _zone(self, game: str) -> TimeZone:
        return self.zones.get(game, TimeZone(DEFAULT_ZONE))

    def _computed(
        self, sql: Engine, game: str, handle: DeltaTable, files: Sequence[FileEntry], days: Collection[date]
    ) -> Iterator[DataFile]:
        """Compute the exposures of some of the game's days, and write a file for each day that has some."""
        schema = schema_of(handle)
        if "exposure" not in schema.names:
            return
        reads = self.definition.reads | _READS
        if lacking := sorted(reads - set(schema.names)):
            raise ContractError(f"{game_table(game)} lacks the column {lacking[0]}, which outcomes of players read")
        columns = pa.schema([column for column in without_zones(schema) if column.name in reads])
        zone = self._zone(game)
        for day in sorted(days):
            utc_days = zone.utc_days_of(day)
            of_day = [file for file in files if day_of(file) in utc_days]
            if not of_day:
                continue
            if missing := missing_files(self.table.store, game_table(game), of_day):
                raise FileNotFoundError(f"{game_table(game)}/{missing[0].relative_path} is gone")
            sql.give("candidates", dataset(self.table.store.location, game_table(game), columns, of_day))
            rows = sql.table(self._sql(events_of_day_sql(zone.sql(utc_days[0], utc_days[-1]), day)))
            if len(rows):
                target = self.table.definition
                stored = pa.schema([each for each in target.schema if each.name not in target.partition_by])
                rows = rows.select(stored.names).cast(stored)
                yield self.table.write(rows, {"event_date": str(day), "game": game})


def existing(table: TableFilesOf, columns: pa.Schema, files: Sequence[FileEntry]) -> Any:  # noqa: ANN401 # a dataset
    """Open files of a table, or an empty relation if there are none.

    Raises:
        FileNotFoundError: a file is deleted already.
    """
    if not files:
        return columns.empty_table()
    if missing := missing_files(table.store, table.path, files):
        raise FileNotFoundError(f"{table.path}/{missing[0].relative_path} is gone")
    return dataset(table.store.location, table.path, columns, files)


def _days_within(utc_day: date | None, windows: Sequence[tuple[date, date]], zone: TimeZone) -> list[date]:
    """Return the game's days within some windows that have a moment of a day of UTC."""
    days = [] if utc_day is None else zone.days_of(utc_day)
    return [day for day in days if any(first <= day <= last for first, last in windows)]
