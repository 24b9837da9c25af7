"""The games contract (`contracts/games.yaml`): games, tables, layouts, mapped messages, aggregates, maintenance."""

import re
from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contract.aggregates import AggregateSpec, Over
from gamelake.contract.located_yaml import declaration, load_declaration, raise_first
from gamelake.contract.messages import MessageSpec
from gamelake.contract.time_zones import DEFAULT_ZONE, Zones, is_zone
from gamelake.model.naming import NO_AGGREGATES, game_table

ColumnName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
_BYTES_PER_UNIT = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SMALLEST_FILE, _LARGEST_FILE = 2**20, 2**30
SnakeName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
FieldPathText = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$")]
# An event id has 36 characters; Kafka takes events below one megabyte.
_TextBytes = Annotated[int, msgspec.Meta(ge=36, le=900_000)]
SizeText = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{0,5} ?(KiB|MiB|GiB)$")]


class TableDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Comments of a table and its columns; a nested column by its dotted path."""

    description: str = ""
    columns: dict[str, str] = {}


class MaintenancePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of compaction, vacuum and backups.

    Attributes:
        hot_files: small files that a partition may have while its day lasts.
        cluster_by: columns by which rows are sorted in a compacted file; those that queries filter by.
        retention_days: how long versions of a table are kept.
        restore_window_days: how far back a table must be restorable.
        longest_query_hours: how long a reader may use one version.
        backup_every_hours: how often the operator runs `make backup`.
        backups_kept: how many of the newest backups are kept.
    """

    hot_files: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 24
    cluster_by: tuple[ColumnName, ...] = ("event_name", "event_time")
    retention_days: Annotated[float, msgspec.Meta(gt=0, le=3_650)] = 14
    restore_window_days: Annotated[float, msgspec.Meta(gt=0, le=3_650)] = 7
    longest_query_hours: Annotated[float, msgspec.Meta(gt=0, le=8_760)] = 6
    backup_every_hours: Annotated[float, msgspec.Meta(gt=0, le=8_760)] = 24
    backups_kept: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 8

    @property
    def retention(self) -> timedelta:
        """The time for which versions are kept."""
        return timedelta(days=self.retention_days)

    @property
    def least_retention(self) -> timedelta:
        """The shortest allowed retention, by restores and queries."""
        return max(timedelta(days=self.restore_window_days), timedelta(hours=self.longest_query_hours))

    @property
    def backup_interval(self) -> timedelta:
        """The time between two backups."""
        return timedelta(hours=self.backup_every_hours)

    @property
    def backups_reach(self) -> timedelta:
        """The time back to which a backup always exists, once `backups_kept` were made."""
        return (self.backups_kept - 1) * self.backup_interval


class UnlistedGames(StrEnum):
    """The treatment of events of a game that no entry matches."""

    OWN_TABLE = "own_table"
    DEAD_LETTERS = "dead_letters"


class PartitionColumn(StrEnum):
    """Columns that a silver table may be partitioned by: few values, present in every event."""

    EVENT_DATE = "event_date"
    EVENT_NAME = "event_name"
    PLATFORM = "platform"


class GameSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One game: the values of `game_name` that belong to it, the layout of its table, and the zone of its days."""

    name: SnakeName
    match: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    partition_by: Annotated[tuple[PartitionColumn, ...], msgspec.Meta(min_length=1)] = (PartitionColumn.EVENT_DATE,)
    target_file_size: SizeText = "128 MiB"
    time_zone: str = DEFAULT_ZONE

    @property
    def game_name(self) -> str:
        """The first value of `game_name` that belongs to the game."""
        return self.match[0]

    @property
    def table(self) -> str:
        """The game's silver table, relative to the lakehouse."""
        return game_table(self.name)

    @property
    def target_file_bytes(self) -> int:
        """The target size of compaction, in bytes."""
        return parse_size(self.target_file_size)


class EventTimeLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The greatest distance of an event's time from its record's timestamp in Kafka."""

    max_age_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] = 400
    max_ahead_hours: Annotated[int, msgspec.Meta(ge=1, le=8_760)] = 48

    @property
    def max_age(self) -> timedelta:
        """Older events are implausible."""
        return timedelta(days=self.max_age_days)

    @property
    def max_ahead(self) -> timedelta:
        """Events further in the future are implausible."""
        return timedelta(hours=self.max_ahead_hours)


class AmountLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The greatest distance of an event's `amount` from zero, in US dollars, so that no sum of amounts overflows."""

    max: Annotated[float, msgspec.Meta(gt=0, le=1e9)] = 1_000_000


class TextLengths(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The greatest length of each text of an event, in bytes of UTF-8; a character has 1 to 4 of them.

    Attributes:
        default: the limit of each text that `fields` does not name.
        fields: limits by the field's path (`personal.free_text`); a map's holds for each of its keys and values, and a
            list's for each of its values.
    """

    default: _TextBytes = 256
    fields: dict[FieldPathText, _TextBytes] = {}

    def of(self, path: str) -> int:
        """Return the limit of the text at a path."""
        return self.fields.get(path, self.default)


class GamesContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `contracts/games.yaml`."""

    games: Annotated[tuple[GameSpec, ...], msgspec.Meta(min_length=1)]
    unlisted_games: UnlistedGames = UnlistedGames.DEAD_LETTERS
    max_unlisted_tables: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 50
    event_time: EventTimeLimits = EventTimeLimits()
    amount: AmountLimits = AmountLimits()
    lengths: TextLengths = TextLengths()
    messages: tuple[MessageSpec, ...] = ()
    aggregates: tuple[AggregateSpec, ...] = ()
    tables: dict[str, TableDescription] = {}
    maintenance: MaintenancePolicy = MaintenancePolicy()

    @property
    def zones(self) -> Zones:
        """The reporting time zone of each title."""
        return Zones.of((title, game.time_zone) for game in self.games for title in game.match)

    def name_of(self, title: str) -> str | None:
        """Return the name of the game with a title; None if no listed game has it."""
        return next((game.name for game in self.games if title in game.match), None)


def parse_size(text: str) -> int:
    """Parse a size such as "128 MiB" to bytes."""
    number, unit = re.fullmatch(r"(\d+) ?(\w+)", text).groups()  # type: ignore[union-attr] # the contract's pattern matched
    return int(number) * _BYTES_PER_UNIT[unit]


@declaration
def load_games(path: Path) -> GamesContract:
    """Read and check the games contract.

    Raises:
        ContractError: a key is unknown, a value is impossible or two games claim the same thing; the message names
            file and line.

    Example:
        >>> contract = load_games(Path("contracts/games.yaml"))
        >>> contract.games[0].game_name, contract.games[0].table
        ('Archery Duel', 'silver/archery_duel_events')
    """
    contract, document = load_declaration(path, GamesContract)
    raise_first(_impossible(contract), document)
    return contract


def _impossible(contract: GamesContract) -> list[tuple[str, str]]:
    """What types can't check: (JSON path, problem) for each."""
    problems: list[tuple[str, str]] = []
    names: set[str] = set()
    matches: dict[str, str] = {}
    if contract.maintenance.retention < contract.maintenance.least_retention:
        problems.append(
            (
                "$.maintenance.retention_days",
                "is shorter than the history that a restore or a query may need; keep more",
            )
        )
    problems.extend([*_shared_gold_tables(contract), *_doubled_columns(contract)])
    for index, game in enumerate(contract.games):
        place = f"$.games[{index}]"
        if game.name in names:
            problems.append((f"{place}.name", f"the game '{game.name}' is listed twice; remove one entry"))
        names.add(game.name)
        for value in game.match:
            if value in matches:
                problems.append(
                    (
                        f"{place}.match",
                        f"'{value}' is claimed by both '{matches[value]}' and '{game.name}'; keep it in one",
                    )
                )
            matches[value] = game.name
        problems.extend((f"{place}.{key}", problem) for key, problem in _layout_problems(game))
    return problems


def _shared_gold_tables(contract: GamesContract) -> Iterator[tuple[str, str]]:
    """The game `word` with `daily_sum` and the game `word_daily` with `sum` would have one table."""
    owners: dict[str, tuple[int, str]] = dict.fromkeys(NO_AGGREGATES, (-1, "the platform itself"))
    for index, aggregate in enumerate(contract.aggregates):
        for game in contract.games:
            owner = (index, f"'{aggregate.name}' of '{game.name if aggregate.over is Over.EACH_GAME else 'all games'}'")
            table = aggregate.table(game.name)
            _, first = known = owners.setdefault(table, owner)
            if known != owner:
                yield (
                    f"$.aggregates[{index}].name",
                    f"{owner[1]} has the table {table}, which {first} has too; rename one",
                )


def _doubled_columns(contract: GamesContract) -> Iterator[tuple[str, str]]:
    for index, aggregate in enumerate(contract.aggregates):
        place, keys = f"$.aggregates[{index}]", aggregate.group_by
        if len(set(keys)) < len(keys):
            yield f"{place}.group_by", f"'{aggregate.name}' is grouped by a column twice; remove one"
        for name in sorted(aggregate.columns.keys() & set(keys)):
            yield (
                f"{place}.columns.{name}",
                f"'{aggregate.name}' is grouped by '{name}', so no other column can have the name",
            )


def _layout_problems(game: GameSpec) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    if any(not value.strip() for value in game.match):
        problems.append(("match", f"'{game.name}' matches an empty game_name; name the game"))
    if game.partition_by[0] is not PartitionColumn.EVENT_DATE:
        problems.append(("partition_by", f"'{game.name}' must be partitioned by event_date first"))
    if len(set(game.partition_by)) != len(game.partition_by):
        problems.append(("partition_by", f"'{game.name}' names a partition column twice"))
    if not _SMALLEST_FILE <= game.target_file_bytes <= _LARGEST_FILE:
        problems.append(
            ("target_file_size", f"'{game.name}' wants files of {game.target_file_size}; choose 1 MiB to 1 GiB")
        )
    if not is_zone(game.time_zone):
        problems.append(
            (
                "time_zone",
                f"'{game.name}' has the unknown time zone '{game.time_zone}'; name one of the IANA database, such as "
                "Asia/Tokyo or America/New_York",
            )
        )
    return problems
