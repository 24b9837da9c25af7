"""The traffic of a run: the number of events, their games, and the share of them with defects."""

from dataclasses import dataclass, field, fields
from datetime import timedelta

from gamelake.model.errors import SettingsError
from tools.simulator.incidents import Incident
from tools.simulator.players import ANONYMOUS, Naming

_MOST_PLAYERS = 400_000
_PLAYERS_PER_EVENT = 0.4
# The newest version of the event in the contract.
NEWEST_VERSION = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of the events, from 0 to 1, that have a defect; an event has one defect at most."""

    late: float = 0.01
    future: float = 0.001
    duplicate: float = 0.005
    undecodable: float = 0.002
    unknown_game: float = 0.001
    null_time: float = 0.001
    wrong_clock: float = 0
    unknown_schema: float = 0

    def __post_init__(self) -> None:
        """Check that no share is negative and that they sum up to 1 at most."""
        shares = [getattr(self, each.name) for each in fields(self)]
        if min(shares) < 0 or sum(shares) > 1:
            raise SettingsError("each share must be at least 0, and all together at most 1")


NO_BAD_EVENTS = Shares(late=0, future=0, duplicate=0, undecodable=0, unknown_game=0, null_time=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSpec:
    """One run of the simulator; the same spec and clock give the same bytes.

    Attributes:
        game_names: values of `game_name`, the most popular game first.
        events: number of events; duplicates come on top.
        players: number of players; by default so many that each has a session or two.
        history: the simulated time that the run covers, ending now; with zero, events happen when they are sent.
        incidents: what goes wrong during the run; a silent game sends fewer events.
    """

    game_names: tuple[str, ...]
    versions: int = NEWEST_VERSION
    events: int = 1_000_000
    seed: int = 7
    players: int | None = None
    history: timedelta = timedelta(minutes=5)
    shares: Shares = field(default_factory=Shares)
    naming: Naming = ANONYMOUS
    incidents: tuple[Incident, ...] = ()

    def __post_init__(self) -> None:
        """Check that the run has games, events and players."""
        if not self.game_names:
            raise SettingsError("the simulator needs at least one game")
        if min(self.versions, self.events, self.population) < 1:
            raise SettingsError("versions, events and players must be at least 1")
        if self.history < timedelta(0):
            raise SettingsError("history must not be negative")

    @property
    def population(self) -> int:
        """Number of players."""
        if self.players is not None:
            return self.players
        return min(_MOST_PLAYERS, max(1, int(self.events * _PLAYERS_PER_EVENT)))
