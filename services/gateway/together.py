"""Many requests' events at once, as columns; whatever is in doubt is left to be looked at event by event."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from gamelake.contracts.games import EventTimeLimits
from gamelake.wire.framing import Flags
from services.gateway.columns.checks import may_not_pass
from services.gateway.columns.lake_columns import LakeColumns
from services.gateway.columns.reading import Read
from services.gateway.parcels import Parcel, Prepared, Ready, Strangers
from services.gateway.personal.cutting import CutOut
from services.gateway.personal.players import Player, Players
from services.gateway.personal.protection import Protection
from services.gateway.producing import Record
from services.gateway.singly import known_or_strangers


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
