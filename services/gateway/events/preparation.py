"""From the events of requests to Kafka records and data for the vault: many events as columns, few one by one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gamelake.contract.games import GamesContract
from gamelake.model.arrays import Flags, Ints
from gamelake.schemas.framing import frame_header
from services.gateway.errors import EventRejection
from services.gateway.events.columns import ColumnarEncoder, ColumnarEvents, invalid_events
from services.gateway.events.text_lengths import TextLengthCheck
from services.gateway.events.validation import MAX_EVENT_BYTES, BodyFormat, EventBatch, EventValidator
from services.gateway.kafka_producer import Record
from services.gateway.personal.fields import PersonalValues
from services.gateway.personal.pseudonymization import PersonalData, Player, PlayerCache, Pseudonymizer, UnownedData

# `RowPreparer` measures the events of a batch that has a longer record.
_LONG = MAX_EVENT_BYTES // 2

# Columns take several times the size of their bodies while they are made.
_COLUMNAR_BYTES = 8 * 2**20

# Columns cost at least a millisecond for any number of events; this many events cost the same one by one (decision
# 0033).
MIN_COLUMNAR_EVENTS = 400
# One by one these take the event loop's time for about 20 ms.
MAX_ROWS = 500


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """The records of a request, which may be sent once the vault has stored the personal data."""

    records: list[Record]
    rejections: list[EventRejection]
    personal_data: Sequence[PersonalData]


@dataclass(frozen=True, slots=True)
class UnknownPlayers:
    """Players that the vault has to resolve before a batch can be prepared.

    Attributes:
        names: theirs in the game.
        personal_data: that of their events, which the vault can store in the same transaction.
    """

    names: Sequence[str]
    personal_data: Sequence[UnownedData] = ()


@dataclass(frozen=True, slots=True)
class TooManyRows:
    """Columns can't represent the batch, and it has more than `MAX_ROWS` events: prepare it in parts."""


PreparationResult = PreparedBatch | UnknownPlayers | TooManyRows


class RecordEncoder:
    """Encodes events in the Confluent wire format, under the lake's schema, which has no personal fields."""

    def __init__(self, schema_id: int) -> None:
        self._header = frame_header(schema_id)

    def encode(self, events: Sequence[Message]) -> list[Record]:
        """Encode one record per event, keyed by player.

        A player's events stay in order, and a game's spread over partitions.
        """
        return [
            {"key": event.gamer_id, "value": self._header + event.SerializeToString()}  # type: ignore[attr-defined]
            for event in events
        ]


class RowPreparer:
    """Prepares a batch event by event: for few events, and for those that need a reason for their rejection."""

    def __init__(
        self, validator: EventValidator, players: PlayerCache, pseudonymizer: Pseudonymizer, encoder: RecordEncoder
    ) -> None:
        self._validator = validator
        self._players = players
        self._pseudonymizer = pseudonymizer
        self._encoder = encoder

    def prepare(self, batch: EventBatch) -> PreparationResult:
        """Read, validate, pseudonymize and encode the events of a batch."""
        validated = self._validator.validate(batch)
        names = [self._pseudonymizer.player_of(event) for event in validated.events]
        owners = resolve_players(batch, names, self._players)
        if isinstance(owners, UnknownPlayers):
            unowned = self._pseudonymizer.unowned(names, validated.personal, owners.names)
            return replace(owners, personal_data=unowned)
        personal_data = self._pseudonymizer.pseudonymize(validated.events, validated.personal, owners)
        return PreparedBatch(self._encoder.encode(validated.events), validated.rejections, personal_data)


def resolve_players(batch: EventBatch, names: Sequence[str], cache: PlayerCache) -> list[Player] | UnknownPlayers:
    """Return the player of each name of a batch, or those of them that the vault has to resolve."""
    found = cache.find(batch.game.name, names)
    if None in found:
        resolved = batch.resolved.get
        found = [player or resolved(name) for name, player in zip(names, found, strict=True)]
        unknown = [name for name, player in zip(names, found, strict=True) if player is None]
        if unknown:
            return UnknownPlayers(list(dict.fromkeys(unknown)))
    return found  # type: ignore[return-value] # none of them is None


@dataclass(frozen=True, slots=True)
class _BatchRows:
    """A batch's rows in the columns of several batches.

    Attributes:
        names: the name of each row's player.
        owners: the player of each row; None if the batch needs preparation row by row.
    """

    batch: EventBatch
    rows: slice
    names: Sequence[str]
    owners: list[Player] | UnknownPlayers | None

    @property
    def pseudonyms(self) -> list[str]:
        """One for each row; blank if the batch is not prepared here."""
        if isinstance(self.owners, list):
            return [player.pseudonym for player in self.owners]
        return [""] * (self.rows.stop - self.rows.start)


class ColumnarPreparer:
    """Prepares batches of one body format together, as columns."""

    def __init__(
        self,
        contract: GamesContract,
        event: Descriptor,
        players: PlayerCache,
        pseudonymizer: Pseudonymizer,
        encoder: ColumnarEncoder,
    ) -> None:
        self._lengths = TextLengthCheck(event, contract.lengths)
        self._max_age = contract.event_time.max_age.total_seconds()
        self._max_ahead = contract.event_time.max_ahead.total_seconds()
        self._largest_amount = contract.amount.max
        self._players = players
        self._pseudonymizer = pseudonymizer
        self._encoder = encoder

    def prepare(self, batches: Sequence[EventBatch]) -> list[PreparationResult | None]:
        """Return one result for each batch; None if an event is invalid, uncertain or large and needs `RowPreparer`."""
        try:
            return self._prepare(batches)
        except Exception:
            # Whatever an event's content can raise here, `RowPreparer` finds the event and rejects it alone.
            return [None] * len(batches)

    def _prepare(self, batches: Sequence[EventBatch]) -> list[PreparationResult | None]:
        columnar = batches[0].body_format.to_columns([event for batch in batches for event in batch.raw_events])
        batch_of_row = np.repeat(np.arange(len(batches)), [len(batch.raw_events) for batch in batches])
        names = columnar.events.column("game_name").to_pylist()
        parts = self._parts(batches, columnar, self._valid(batches, columnar, batch_of_row), names)
        values = self._kafka_values(columnar.events, parts, names, batch_of_row)
        personal = self._pseudonymizer.extractor.values_of(columnar.events)
        return [self._result(part, values[part.rows], personal[part.rows]) for part in parts]

    def _valid(self, batches: Sequence[EventBatch], columnar: ColumnarEvents, batch_of_row: Ints) -> Flags:
        arrived = np.array([batch.arrived.timestamp() for batch in batches])[batch_of_row]
        invalid = invalid_events(
            columnar.events, arrived - self._max_age, arrived + self._max_ahead, self._largest_amount
        )
        return np.asarray(~(invalid | columnar.uncertain | self._lengths.too_long(columnar.events)))

    def _parts(
        self, batches: Sequence[EventBatch], columnar: ColumnarEvents, valid: Flags, game_names: Sequence[str]
    ) -> list[_BatchRows]:
        players = columnar.events.column(self._pseudonymizer.fields.player).to_pylist()
        parts = []
        for batch, rows in _with_rows(batches):
            is_valid = valid[rows].all() and _has_own_game_names(batch, game_names[rows])
            names = players[rows]
            owners = resolve_players(batch, names, self._players) if is_valid else None
            parts.append(_BatchRows(batch, rows, names, owners))
        return parts

    def _kafka_values(
        self, events: pa.RecordBatch, parts: Sequence[_BatchRows], game_names: Sequence[str], batch_of_row: Ints
    ) -> list[bytes]:
        """A Kafka value for each row; those of batches that are not prepared here are not used."""
        pseudonyms = [pseudonym for part in parts for pseudonym in part.pseudonyms]
        games = [name or part.batch.game.game_name for part in parts for name in game_names[part.rows]]
        arrived = pa.array([part.batch.arrived for part in parts], pa.timestamp("us", "UTC"))
        overrides = {
            self._pseudonymizer.fields.player: pa.array(pseudonyms, pa.string()),
            "game_name": pa.array(games, pa.string()),
            "ingest_time": arrived.cast(events.schema.field("ingest_time").type).take(pa.array(batch_of_row)),
        }
        return self._encoder.encode(events, overrides)

    def _result(
        self, part: _BatchRows, values: Sequence[bytes], personal: Sequence[PersonalValues]
    ) -> PreparationResult | None:
        owners = part.owners
        if part.batch.may_have_large_events and max(map(len, values)) > _LONG:
            return None
        if isinstance(owners, UnknownPlayers):
            return replace(owners, personal_data=self._pseudonymizer.unowned(part.names, personal, owners.names))
        if owners is None:
            return None
        records: list[Record] = [
            {"key": player.pseudonym, "value": value} for player, value in zip(owners, values, strict=True)
        ]
        return PreparedBatch(records, [], self._pseudonymizer.unstored(owners, personal))


def _with_rows(batches: Sequence[EventBatch]) -> Iterator[tuple[EventBatch, slice]]:
    start = 0
    for batch in batches:
        end = start + len(batch.raw_events)
        yield batch, slice(start, end)
        start = end


def _has_own_game_names(batch: EventBatch, names: Sequence[str]) -> bool:
    return set(names) <= {"", *batch.game.match}


def _groups(batches: dict[int, EventBatch]) -> Iterator[dict[int, EventBatch]]:
    """Divide batches into groups whose bodies have `_COLUMNAR_BYTES` together; a larger batch is alone."""
    group: dict[int, EventBatch] = {}
    size = 0
    for index, batch in batches.items():
        if group and size + batch.size > _COLUMNAR_BYTES:
            yield group
            group, size = {}, 0
        group[index] = batch
        size += batch.size
    yield group


class BatchPreparer:
    """Prepares the batches of concurrent requests; invalid events affect only their own batch."""

    def __init__(
        self,
        row_preparer: RowPreparer,
        columnar_preparer: ColumnarPreparer,
        min_columnar_events: int = MIN_COLUMNAR_EVENTS,
        max_rows: int = MAX_ROWS,
    ) -> None:
        self._row_preparer = row_preparer
        self._columnar_preparer = columnar_preparer
        self._min_columnar_events = min_columnar_events
        self._max_rows = max_rows

    def prepare(self, batches: Sequence[EventBatch]) -> list[PreparationResult]:
        """Prepare each batch; return the results in their order."""
        prepared: dict[int, PreparationResult] = {}
        for body_format in {batch.body_format for batch in batches}:
            of_format = {index: batch for index, batch in enumerate(batches) if batch.body_format is body_format}
            prepared |= self._prepare_format(body_format, of_format)
        return [prepared[index] for index in range(len(batches))]

    def _prepare_format(self, body_format: BodyFormat, batches: dict[int, EventBatch]) -> dict[int, PreparationResult]:
        supported = {index: batch for index, batch in batches.items() if body_format.supports_columns(batch.raw_events)}
        prepared: dict[int, PreparationResult] = {}
        for group in _groups(supported):
            prepared |= self._prepare_columns(group)
        return prepared | {
            index: self._prepare_rows(batch) for index, batch in batches.items() if index not in prepared
        }

    def _prepare_rows(self, batch: EventBatch) -> PreparationResult:
        return TooManyRows() if len(batch.raw_events) > self._max_rows else self._row_preparer.prepare(batch)

    def _prepare_columns(self, batches: dict[int, EventBatch]) -> dict[int, PreparationResult]:
        """Return the results of those batches that can be prepared as columns, by index."""
        if sum(len(batch.raw_events) for batch in batches.values()) < self._min_columnar_events:
            return {}
        found = self._columnar_preparer.prepare(list(batches.values()))
        if len(batches) > 1 and not any(found):
            # One batch can make the columns of all fail; large ones are worth another attempt alone.
            large = [len(batch.raw_events) >= self._min_columnar_events for batch in batches.values()]
            found = [
                self._columnar_preparer.prepare([batch])[0] if is_large else None
                for batch, is_large in zip(batches.values(), large, strict=True)
            ]
        return {index: result for index, result in zip(batches, found, strict=True) if result is not None}
