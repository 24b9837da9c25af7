"""Things that go wrong in a game for a while: simulated, so that whoever watches games can be seen to find them."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from gamelake.model.errors import SettingsError
from tools.simulator import reference_data
from tools.simulator.event_arrays import Happening, Moments

_STORE_FAILS = reference_data.ERRORS.index("store_unavailable")
_CRASH = reference_data.ERRORS.index("out_of_memory")
# One event in three of a version that crashes is a crash; session starts and ends stay what they are.
_CRASHING = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IN_PLAY = (Happening.LEVEL_STARTED, Happening.LEVEL_COMPLETED, Happening.LEVEL_FAILED, Happening.AD_VIEWED)


class IncidentKind(StrEnum):
    """What goes wrong."""

    BROKEN_PURCHASES = "broken_purchases"
    CRASHES = "crashes"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What goes wrong in which game and when, each day (UTC); `release` is the version that crashes, of all games."""

    kind: IncidentKind
    subject: str
    begins: time
    ends: time

    @classmethod
    def parse(cls, text: str) -> "Incident":
        """Read `broken_purchases/Kart Rumble/14:00/15:30` or `crashes/4.4.0/14:00/16:00`.

        Raises:
            SettingsError: it is no such text.
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
        """At which of some times it goes on."""
        moment = event_time_us % _microseconds(timedelta(days=1))
        begins, ends = (
            _microseconds(datetime.combine(_EPOCH, each, UTC) - _EPOCH) for each in (self.begins, self.ends)
        )
        if begins <= ends:
            return np.asarray((moment >= begins) & (moment < ends))
        return np.asarray((moment >= begins) | (moment < ends))


@dataclass(frozen=True, slots=True)
class Incidents:
    """All that goes wrong in a run."""

    incidents: tuple[Incident, ...]
    game_names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what can't happen."""
        for each in self.incidents:
            known = reference_data.RELEASES if each.kind is IncidentKind.CRASHES else self.game_names
            if each.subject not in known:
                raise SettingsError(f"--incident names '{each.subject}', which is none of {', '.join(known)}")

    def happen(self, moments: Moments, event_time_us: npt.NDArray[np.int64]) -> Moments:
        """The moments as they are with what goes wrong; some are not there at all."""
        kept = np.ones(len(moments), np.bool_)
        for incident in self.incidents:
            hit = incident.is_on(event_time_us) & self._concerns(incident, moments)
            if incident.kind is IncidentKind.SILENCE:
                kept &= ~hit
            elif incident.kind is IncidentKind.BROKEN_PURCHASES:
                moments = _failing(moments, hit & (moments.happening == Happening.PURCHASE), _STORE_FAILS)
            else:
                crashing = np.isin(moments.happening, _IN_PLAY) & (moments.salt % np.uint64(_CRASHING) == 0)
                moments = _failing(moments, hit & crashing, _CRASH)
        return moments if kept.all() else moments[kept]

    def _concerns(self, incident: Incident, moments: Moments) -> npt.NDArray[np.bool_]:
        if incident.kind is IncidentKind.CRASHES:
            return np.asarray(moments.release == reference_data.RELEASES.index(incident.subject))
        return np.asarray(moments.game == self.game_names.index(incident.subject))


def _failing(moments: Moments, hit: npt.NDArray[np.bool_], error: int) -> Moments:
    """The same moments, of which some are errors instead."""
    return replace(
        moments,
        happening=np.where(hit, Happening.ERROR, moments.happening).astype(np.int8),
        error=np.where(hit, error, moments.error).astype(np.int8),
        product=np.where(hit, -1, moments.product).astype(np.int8),
    )


def _microseconds(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1_000_000)
