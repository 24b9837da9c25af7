"""From the events of requests to Kafka records and data for the vault: many events as columns, few one by one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import Message

from gamelake.model.games import EventTimeLimits, GameSpec
from gamelake.schemas.framing import Flags, frame_header
from services.gateway.columns import LakeColumns, Read, may_not_pass
from services.gateway.errors import Reason, Rejection
from services.gateway.kafka_producer import LARGEST_VALUE_BYTES, Record
from services.gateway.personal.fields import CutOut
from services.gateway.personal.pseudonymization import Belonging, Player, Players, Protection
from services.gateway.validation import Admission, Form


@dataclass(frozen=True, slots=True)
class Parcel:
    """A request's events as they were written, and those of their players whom the vault was asked for."""

    game: GameSpec
    form: Form
    written: Sequence[Any]
    introduced: Mapping[str, Player] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """What Kafka gets, once the vault has what belongs to players."""

    records: list[Record]
    rejections: list[Rejection]
    belongings: Sequence[Belonging]

    def without_large_records(self) -> "Ready":
        """The same, with the events rejected that Kafka would never take, however often they are sent."""
        if max([len(record["value"]) for record in self.records], default=0) <= LARGEST_VALUE_BYTES:
            return self
        rejected = {rejection.index for rejection in self.rejections}
        passed = [index for index in range(len(self.records) + len(rejected)) if index not in rejected]
        large = [
            Rejection(index, Reason.TOO_LARGE)
            for index, record in zip(passed, self.records, strict=True)
            if len(record["value"]) > LARGEST_VALUE_BYTES
        ]
        records = [record for record in self.records if len(record["value"]) <= LARGEST_VALUE_BYTES]
        return Ready(records, sorted([*self.rejections, *large], key=lambda each: each.index), self.belongings)


@dataclass(frozen=True, slots=True)
class Strangers:
    """Players whom the vault has to be asked for before anything can be made of their events."""

    names: Sequence[str]


Prepared = Ready | Strangers


class Encoder:
    """Writes events of the submitted contract, whose personal fields are gone, under a schema that never had them."""

    def __init__(self, schema_id: int) -> None:
        self._header = frame_header(schema_id)

    def encode(self, events: Sequence[Message]) -> list[Record]:
        """One record per event; a player's events stay in order in one partition, a game's spread over all."""
        return [
            {"key": event.gamer_id, "value": self._header + event.SerializeToString()}  # type: ignore[attr-defined]
            for event in events
        ]


class Singly:
    """Prepares one parcel after the other."""

    def __init__(self, admission: Admission, players: Players, protection: Protection, encoder: Encoder) -> None:
        self._admission = admission
        self._players = players
        self._protection = protection
        self._encoder = encoder

    def prepare(self, parcel: Parcel) -> Prepared:
        """Read, check, protect and encode the events of a parcel."""
        admitted = self._admission.admit(parcel.form, parcel.written, parcel.game)
        players = self._players_of(parcel, admitted.events)
        if isinstance(players, Strangers):
            return players
        belongings = self._protection.protect(admitted.events, players)
        return Ready(self._encoder.encode(admitted.events), admitted.rejections, belongings)

    def _players_of(self, parcel: Parcel, events: Sequence[Message]) -> dict[str, Player] | Strangers:
        return known_or_strangers(parcel, [self._protection.player_of(event) for event in events], self._players)


def known_or_strangers(parcel: Parcel, names: Sequence[str], players: Players) -> dict[str, Player] | Strangers:
    """The players of a parcel by name, or those of them that the vault has to be asked for."""
    game, introduced = parcel.game.name, parcel.introduced
    found = {name: introduced.get(name) or players.known(game, name) for name in dict.fromkeys(names)}
    strangers = [name for name, player in found.items() if player is None]
    if strangers:
        return Strangers(strangers)
    return found  # type: ignore[return-value] # none of them is None


@dataclass(frozen=True, slots=True)
class _Section:
    """A parcel's rows among those of all; its players, unless something is in doubt or the vault must be asked."""

    parcel: Parcel
    rows: slice
    owners: list[Player] | Strangers | None

    @property
    def pseudonyms(self) -> list[str]:
        """One for each event, blank where the event does not leave the service this time."""
        if isinstance(self.owners, list):
            return [player.pseudonym for player in self.owners]
        return [""] * (self.rows.stop - self.rows.start)


class Together:
    """Prepares parcels of one form."""

    def __init__(self, limits: EventTimeLimits, players: Players, protection: Protection, lake: LakeColumns) -> None:
        self._max_age = limits.max_age.total_seconds()
        self._max_ahead = limits.max_ahead.total_seconds()
        self._players = players
        self._protection = protection
        self._lake = lake

    def prepare(self, parcels: Sequence[Parcel]) -> list[Prepared | None]:
        """What is made of each parcel, None where something in it is in doubt."""
        read = parcels[0].form.columns([event for parcel in parcels for event in parcel.written])
        if read is None:
            return [None] * len(parcels)
        now = datetime.now(UTC)
        names = read.events.column("game_name").to_pylist()
        sections = self._sections(parcels, read, self._clear(read, now), names)
        values = self._values(read.events, sections, names, now)
        cut_outs = self._protection.cutter.look_at(read.events)
        return [self._prepared(section, values[section.rows], cut_outs[section.rows]) for section in sections]

    def _clear(self, read: Read, now: datetime) -> Flags:
        moment = now.timestamp()
        wrong = may_not_pass(read.events, moment - self._max_age, moment + self._max_ahead)
        return np.asarray(~(wrong | read.in_doubt))

    def _sections(
        self, parcels: Sequence[Parcel], read: Read, clear: Flags, game_names: Sequence[str]
    ) -> list[_Section]:
        players = read.events.column(self._protection.fields.player).to_pylist()
        return [
            _Section(parcel, rows, self._owners(parcel, players[rows]))
            if clear[rows].all() and _names_its_own_game(parcel, game_names[rows])
            else _Section(parcel, rows, None)
            for parcel, rows in _with_rows(parcels)
        ]

    def _owners(self, parcel: Parcel, names: Sequence[str]) -> list[Player] | Strangers:
        found = known_or_strangers(parcel, names, self._players)
        return found if isinstance(found, Strangers) else [found[name] for name in names]

    def _values(
        self, events: pa.RecordBatch, sections: Sequence[_Section], game_names: Sequence[str], now: datetime
    ) -> list[bytes]:
        """A Kafka value for each event; what isn't ready is written with the rest, and left."""
        pseudonyms = [pseudonym for section in sections for pseudonym in section.pseudonyms]
        games = [name or each.parcel.game.game_name for each in sections for name in game_names[each.rows]]
        arrival = pa.scalar(now, pa.timestamp("us", "UTC")).cast(events.schema.field("ingest_time").type)
        ours = {
            self._protection.fields.player: pa.array(pseudonyms, pa.string()),
            "game_name": pa.array(games, pa.string()),
            "ingest_time": pa.repeat(arrival, events.num_rows),
        }
        return self._lake.values(events, ours)

    def _prepared(self, section: _Section, values: Sequence[bytes], cut_outs: Sequence[CutOut]) -> Prepared | None:
        owners = section.owners
        if not isinstance(owners, list):
            return owners
        records: list[Record] = [
            {"key": player.pseudonym, "value": value} for player, value in zip(owners, values, strict=True)
        ]
        return Ready(records, [], self._protection.to_keep(owners, cut_outs))


def _with_rows(parcels: Sequence[Parcel]) -> Iterator[tuple[Parcel, slice]]:
    start = 0
    for parcel in parcels:
        end = start + len(parcel.written)
        yield parcel, slice(start, end)
        start = end


def _names_its_own_game(parcel: Parcel, names: Sequence[str]) -> bool:
    return set(names) <= {"", *parcel.game.match}


# Columns cost a millisecond and more however few the events are, which so many cost one by one (decision 0033).
FEW = 400


class Assembly:
    """Prepares the parcels that have gathered; none of them waits for another's trouble."""

    def __init__(self, singly: Singly, together: Together, few: int = FEW) -> None:
        self._singly = singly
        self._together = together
        self._few = few

    def prepare(self, parcels: Sequence[Parcel]) -> list[Prepared]:
        """What is made of each parcel, in their order."""
        prepared: dict[int, Prepared] = {}
        for form in {parcel.form for parcel in parcels}:
            places = [place for place, parcel in enumerate(parcels) if parcel.form is form]
            prepared |= self._of_one_form(form, {place: parcels[place] for place in places})
        return [prepared[place] for place in range(len(parcels))]

    def _of_one_form(self, form: Form, parcels: dict[int, Parcel]) -> dict[int, Prepared]:
        fit = {place: parcel for place, parcel in parcels.items() if form.may_be_columns(parcel.written)}
        prepared = self._as_columns(fit)
        return prepared | {
            place: self._singly.prepare(parcel) for place, parcel in parcels.items() if place not in prepared
        }

    def _as_columns(self, parcels: dict[int, Parcel]) -> dict[int, Prepared]:
        """Those of the parcels that could be prepared together."""
        if sum(len(parcel.written) for parcel in parcels.values()) < self._few:
            return {}
        found = self._together.prepare(list(parcels.values()))
        if len(parcels) > 1 and not any(found):
            # A single one can spoil the columns of all.
            large = [len(parcel.written) >= self._few for parcel in parcels.values()]
            found = [
                self._together.prepare([parcel])[0] if is_large else None
                for parcel, is_large in zip(parcels.values(), large, strict=True)
            ]
        return {place: made for place, made in zip(parcels, found, strict=True) if made is not None}
