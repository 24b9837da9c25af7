"""Simulated incidents in games: failing purchases, crashes of a release, silence; they test incident detection."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from gamelake.model.errors import SettingsError
from tools.simulator import reference_data
from tools.simulator.event_arrays import EventArrays, EventKind

_STORE_FAILS = reference_data.ERRORS.index("store_unavailable")
_CRASH = reference_data.ERRORS.index("out_of_memory")
# One event in three of a crashing release is a crash; starts and ends of sessions are not changed.
_CRASHING = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IN_PLAY = (EventKind.LEVEL_STARTED, EventKind.LEVEL_COMPLETED, EventKind.LEVEL_FAILED, EventKind.AD_VIEWED)


class IncidentKind(StrEnum):
    """The kind of an incident."""

    BROKEN_PURCHASES = "broken_purchases"
    CRASHES = "crashes"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An incident that recurs each day between two times (UTC).

    Attributes:
        subject: a game's title; for CRASHES the release that crashes, in all games.
    """

    kind: IncidentKind
    subject: str
    begins: time
    ends: time

    @classmethod
    def parse(cls, text: str) -> "Incident":
        """Read `broken_purchases/Kart Rumble/14:00/15:30` or `crashes/4.4.0/14:00/16:00`.

        Raises:
            SettingsError: the text has another form.
        """
        try:
            kind, subject, begins, ends = text.split("/")
            return cls(
                kind=IncidentKind(kind),
                subject=subject,
                begins=time.fromisoformat(begins),
                ends=time.fromisoformat(ends),
            )
        except ValueError as error:
            raise SettingsError(f"--incident is '{text}'; write KIND/GAME OR VERSION/FROM/TO: {error}") from error

    def is_on(self, event_time_us: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return a mask of the times (microseconds since 1970) at which the incident is active."""
        time_of_day = event_time_us % _microseconds(timedelta(days=1))
        begins, ends = (
            _microseconds(datetime.combine(_EPOCH, each, UTC) - _EPOCH) for each in (self.begins, self.ends)
        )
        if begins <= ends:
            return np.asarray((time_of_day >= begins) & (time_of_day < ends))
        return np.asarray((time_of_day >= begins) | (time_of_day < ends))


@dataclass(frozen=True, slots=True)
class Incidents:
    """All incidents of a run."""

    incidents: tuple[Incident, ...]
    game_names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check that the subjects exist."""
        for each in self.incidents:
            known = reference_data.RELEASES if each.kind is IncidentKind.CRASHES else self.game_names
            if each.subject not in known:
                raise SettingsError(f"--incident names '{each.subject}', which is none of {', '.join(known)}")

    def apply(self, events: EventArrays, event_time_us: npt.NDArray[np.int64]) -> EventArrays:
        """Change the events by the incidents that are active at their times; a silent game loses its events."""
        kept = np.ones(len(events), np.bool_)
        for incident in self.incidents:
            hit = incident.is_on(event_time_us) & self._concerns(incident, events)
            if incident.kind is IncidentKind.SILENCE:
                kept &= ~hit
            elif incident.kind is IncidentKind.BROKEN_PURCHASES:
                events = _failing(events, hit & (events.kind == EventKind.PURCHASE), _STORE_FAILS)
            else:
                crashing = np.isin(events.kind, _IN_PLAY) & (events.salt % np.uint64(_CRASHING) == 0)
                events = _failing(events, hit & crashing, _CRASH)
        return events if kept.all() else events[kept]

    def _concerns(self, incident: Incident, events: EventArrays) -> npt.NDArray[np.bool_]:
        if incident.kind is IncidentKind.CRASHES:
            return np.asarray(events.release == reference_data.RELEASES.index(incident.subject))
        return np.asarray(events.game == self.game_names.index(incident.subject))


def _failing(events: EventArrays, hit: npt.NDArray[np.bool_], error: int) -> EventArrays:
    """The events, with those of the mask turned into errors."""
    return replace(
        events,
        kind=np.where(hit, EventKind.ERROR, events.kind).astype(np.int8),
        error=np.where(hit, error, events.error).astype(np.int8),
        product=np.where(hit, -1, events.product).astype(np.int8),
    )


def _microseconds(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1_000_000)
