"""The experiments that the gateway evaluates, reloaded when their file changes.

If the file has an error, the previous experiments stay in use. Events are never affected.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from gamelake.contract.experiments import ExperimentSpec, in_buckets, load_experiments, title_of
from gamelake.contract.games import load_games
from gamelake.contract.metrics import METRICS_FILE, load_metrics
from gamelake.contract.time_zones import TimeZone
from gamelake.model.errors import ContractError
from gamelake.model.logs import event_logger
from services.sdk.experiments import Experiment

log = event_logger(__name__)


class FlagReason(StrEnum):
    """Why a flag has its value, in OpenFeature's terms.

    OFREP's schema lists fewer reasons and refers to OpenFeature's, of which `DEFAULT` is one.
    """

    SPLIT = "SPLIT"
    DEFAULT = "DEFAULT"
    DISABLED = "DISABLED"


@dataclass(frozen=True, slots=True)
class FlagEvaluation:
    """A flag's value for one player.

    Attributes:
        key: the experiment's name.
        variant: the player's variant; the control if the player is not in the experiment.
        reason: `SPLIT` if the player is in the experiment.
    """

    key: str
    variant: str
    reason: FlagReason


@dataclass(frozen=True, slots=True)
class Flag:
    """An experiment as a flag; `zone` is the time zone of its days."""

    spec: ExperimentSpec
    assignment: Experiment
    zone: TimeZone

    @classmethod
    def of(cls, spec: ExperimentSpec, zone: str) -> "Flag":
        """Return the flag of an experiment."""
        allowed = {
            "platform": spec.eligibility.platforms,
            "country": spec.eligibility.countries,
            "app_version": spec.eligibility.app_versions,
        }
        assignment = Experiment(
            name=spec.name,
            salt=spec.seed,
            enrolled=in_buckets(spec.eligibility.share),
            variants=[(each.name, in_buckets(each.share)) for each in spec.variants],
            conditions={name: values for name, values in allowed.items() if values},
        )
        return cls(spec, assignment, TimeZone(zone))

    def evaluate(self, player: str, attributes: Mapping[str, object], now: float) -> FlagEvaluation:
        """Return the flag's value for a player.

        Args:
            player: the game's own name of the player.
            attributes: the player's `platform`, `country` and `app_version`.
            now: in seconds since 1970.
        """
        if not self.spec.is_running(self.zone.day(datetime.fromtimestamp(now, UTC))):
            return FlagEvaluation(self.spec.name, self.spec.control, FlagReason.DISABLED)
        variant = self.assignment.variant_of(player, attributes)
        if variant is None:
            return FlagEvaluation(self.spec.name, self.spec.control, FlagReason.DEFAULT)
        return FlagEvaluation(self.spec.name, variant, FlagReason.SPLIT)


_Flags = Mapping[str, Mapping[str, Flag]]


@dataclass(slots=True)
class ExperimentFlags:
    """The flags of all games.

    Attributes:
        file: the experiments contract. If there is no file, games have no flags.
        games_file: the games contract; the metrics contract is in the same folder.
        clock: returns the current time in seconds since 1970.
    """

    file: Path
    games_file: Path
    clock: Callable[[], float] = time.time
    _was_read: bool = field(default=False, init=False)
    _content: bytes | str | None = field(default=None, init=False)
    _flags: _Flags | None = field(default=None, init=False)

    @property
    def is_known(self) -> bool:
        """True if the file was read without an error at least once."""
        return self._flags is not None

    def all_of(self, game: str) -> Sequence[Flag]:
        """Return all flags of a game."""
        return list((self._flags or {}).get(game, {}).values())

    def find(self, game: str, key: str) -> Flag | None:
        """Return a game's flag with this key, or None."""
        return (self._flags or {}).get(game, {}).get(key)

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        content = self._read()
        if self._was_read and content == self._content:
            return
        self._was_read, self._content = True, content
        try:
            self._flags = {} if content is None else self._load()
        except ContractError as error:
            log.warning(
                "experiments_rejected",
                error=error,
                action="the previous experiments stay in use; correct the file",
            )
            return
        log.info("experiments_loaded", experiments=sum(map(len, self._flags.values())))

    def _read(self) -> bytes | str | None:
        """Return the file's content, or None without a file, or why it can't be read."""
        try:
            return self.file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            return str(error)

    def _load(self) -> _Flags:
        games = load_games(self.games_file)
        metrics = load_metrics(self.games_file.with_name(METRICS_FILE))
        flags: defaultdict[str, dict[str, Flag]] = defaultdict(dict)
        for spec in load_experiments(self.file, games, metrics).experiments:
            flags[spec.game][spec.name] = Flag.of(spec, title_of(games, spec).time_zone)
        return dict(flags)
