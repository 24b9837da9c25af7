"""The experiments contract (`contracts/experiments.yaml`): variants, shares, times, eligibility and metrics."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from gamelake.contract.aggregates import MetricColumn
from gamelake.contract.games import GamesContract, GameSpec, SnakeName
from gamelake.contract.located_yaml import Problem, declaration, load_declaration, raise_first
from gamelake.contract.metrics import Aggregation, MetricsContract, MetricType

# The experiments contract lies next to the games contract.
EXPERIMENTS_FILE = "experiments.yaml"
# The aggregate whose columns are the outcomes of players.
PLAYER_DAYS = "all_player_days"
BUCKETS = 10_000
# Results read all days of an experiment.
MOST_DAYS = 92
_PLAYER = "gamer_id"
_ROUNDING = 1e-6
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class ExperimentUnit(StrEnum):
    """The thing that is assigned to a variant."""

    PLAYER = "player"


class Guard(StrEnum):
    """The change of a guardrail metric that counts as harm."""

    MUST_NOT_FALL = "must_not_fall"
    MUST_NOT_RISE = "must_not_rise"


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One variant, and its share of the enrolled players."""

    name: SnakeName
    share: Share


class Eligibility(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The players who can be enrolled; an empty list allows every value.

    Attributes:
        share: the share of the players who are enrolled.
        platforms: platforms as events have them.
        countries: ISO 3166-1 alpha-2.
        app_versions: exact versions of the game.
    """

    share: Share = 1.0
    platforms: tuple[_Text, ...] = ()
    countries: tuple[_Text, ...] = ()
    app_versions: tuple[_Text, ...] = ()


class ExperimentSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One experiment of one game.

    Attributes:
        variants: the variants in the order of their buckets; the first one is the control.
        start: the first day, in the game's time zone.
        end: the last day; without it, the experiment ends after `MOST_DAYS` days.
        salt: part of each hash; a new salt assigns all players again. Default: the experiment's name.
        primary: the metric that decides.
        guardrails: metrics that must not get worse, each with the change that counts as harm.
    """

    name: SnakeName
    game: SnakeName
    description: Annotated[str, msgspec.Meta(min_length=1)]
    variants: Annotated[tuple[Variant, ...], msgspec.Meta(min_length=2, max_length=20)]
    start: date
    primary: str
    end: date | None = None
    unit: ExperimentUnit = ExperimentUnit.PLAYER
    salt: SnakeName | None = None
    eligibility: Eligibility = Eligibility()
    guardrails: dict[str, Guard] = {}

    @property
    def control(self) -> str:
        """The variant that the others are compared with."""
        return self.variants[0].name

    @property
    def seed(self) -> str:
        """The salt of the experiment's hashes."""
        return self.salt or self.name

    @property
    def last_day(self) -> date:
        """The last day whose events count, in the game's time zone."""
        return self.end or self.start + timedelta(days=MOST_DAYS - 1)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The primary metric and the guardrails, each once."""
        return tuple(dict.fromkeys([self.primary, *self.guardrails]))

    def is_running(self, today: date) -> bool:
        """Return True if players are assigned on a day of the game's time zone."""
        return self.start <= today <= self.last_day


class ExperimentsContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `contracts/experiments.yaml`."""

    experiments: tuple[ExperimentSpec, ...] = ()


class Outcome(NamedTuple):
    """A metric as a column of gold's player days.

    Attributes:
        column: the column.
        is_share: True if a player counts once if the column is above 0: the mean is a share of players.
    """

    column: str
    is_share: bool


def outcomes(games: GamesContract, metrics: MetricsContract) -> Mapping[str, Outcome]:
    """Return the metrics that experiments can use, by name.

    They are the metrics among the columns of `all_player_days`, and those that count the different players with one of
    them: `payers` counts players with `purchases`.
    """
    columns = next((each.columns for each in games.aggregates if each.name == PLAYER_DAYS), {})
    summed = {each.metric: name for name, each in columns.items() if isinstance(each, MetricColumn)}
    found = {metric: Outcome(column, is_share=False) for metric, column in summed.items()}
    measures = {each.name: each for each in metrics.events.measures}
    simple = {each.name: each for each in metrics.metrics if each.type is MetricType.SIMPLE}
    counted = {
        simple[metric].filter: column
        for metric, column in summed.items()
        if metric in simple and measures[simple[metric].type_params.measure].agg is Aggregation.COUNT
    }
    for metric in simple.values():
        measure = measures[metric.type_params.measure]
        is_of_players = measure.agg is Aggregation.COUNT_DISTINCT and measure.expr == _PLAYER
        if is_of_players and metric.filter in counted:
            found[metric.name] = Outcome(counted[metric.filter], is_share=True)
    return found


def title_of(games: GamesContract, experiment: ExperimentSpec) -> GameSpec:
    """Return the game of an experiment."""
    return next(game for game in games.games if game.name == experiment.game)


def in_buckets(share: float) -> int:
    """Return the number of buckets of a share."""
    return round(share * BUCKETS)


@declaration
def load_experiments(path: Path, games: GamesContract, metrics: MetricsContract) -> ExperimentsContract:
    """Read and check the experiments contract.

    Args:
        path: the file.
        games: the games contract, which has the games that experiments name.
        metrics: the metrics contract, which has the metrics.

    Raises:
        ContractError: a key is unknown, a value is impossible, shares don't add up to 1, or a name is unknown or listed
            twice; the message names file and line.
    """
    contract, document = load_declaration(path, ExperimentsContract)
    known, usable, names = {game.name for game in games.games}, outcomes(games, metrics), set[str]()
    problems: list[Problem] = []
    for index, experiment in enumerate(contract.experiments):
        place = f"$.experiments[{index}]"
        if experiment.name in names:
            problems.append((f"{place}.name", f"'{experiment.name}' is listed twice; rename one"))
        names.add(experiment.name)
        if experiment.game not in known:
            problems.append((f"{place}.game", f"games.yaml does not have the game '{experiment.game}'"))
        problems += [
            *_time_problems(experiment, place),
            *_share_problems(experiment, place),
            *_metric_problems(experiment, place, usable),
        ]
    raise_first(problems, document)
    return contract


def _time_problems(experiment: ExperimentSpec, place: str) -> Iterator[Problem]:
    if experiment.end is not None and not 0 <= (experiment.end - experiment.start).days < MOST_DAYS:
        yield f"{place}.end", f"'{experiment.name}' must end 0 to {MOST_DAYS - 1} days after its start"


def _share_problems(experiment: ExperimentSpec, place: str) -> Iterator[Problem]:
    shares = {f"{place}.variants[{index}].share": each.share for index, each in enumerate(experiment.variants)}
    for at, share in {f"{place}.eligibility.share": experiment.eligibility.share, **shares}.items():
        if in_buckets(share) == 0 or abs(share * BUCKETS - in_buckets(share)) > _ROUNDING:
            yield at, f"the share {share} of '{experiment.name}' must be a multiple of {1 / BUCKETS}"
    if sum(map(in_buckets, shares.values())) != BUCKETS:
        yield f"{place}.variants", f"the shares of '{experiment.name}' add up to {sum(shares.values()):g}, not to 1"
    variants = [each.name for each in experiment.variants]
    for index, name in enumerate(variants):
        if name in variants[:index]:
            yield f"{place}.variants[{index}].name", f"'{name}' is listed twice; rename one"


def _metric_problems(experiment: ExperimentSpec, place: str, usable: Mapping[str, Outcome]) -> Iterator[Problem]:
    used = {f"{place}.primary": experiment.primary}
    used |= {f"{place}.guardrails.{each}": each for each in experiment.guardrails}
    for at, metric in used.items():
        if metric not in usable:
            yield at, f"'{metric}' is not a metric of players' days; use one of: {', '.join(sorted(usable))}"
    if experiment.primary in experiment.guardrails:
        yield f"{place}.guardrails.{experiment.primary}", f"'{experiment.primary}' is the primary metric; remove it"
