"""Which round of upkeep runs when, as `contracts/schedule.yaml` says it."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contracts.cadence import Cadence, parse_cadence
from gamelake.contracts.located_yaml import load_located
from gamelake.errors import ContractError

RoundName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
JobName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]


class ScheduledRound(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program and when it runs."""

    name: RoundName
    when: str
    job: JobName
    arguments: tuple[str, ...] = ()
    jitter_minutes: Annotated[int, msgspec.Meta(ge=0, le=1_440)] = 0
    at_most_hours: Annotated[float, msgspec.Meta(gt=0, le=168)] = 6

    @property
    def cadence(self) -> Cadence:
        """When it runs, but for the jitter."""
        return parse_cadence(self.when)

    @property
    def jitter(self) -> timedelta:
        """How much later than that it begins at most."""
        return timedelta(minutes=self.jitter_minutes)

    @property
    def at_most(self) -> timedelta:
        """How long it may take."""
        return timedelta(hours=self.at_most_hours)

    @property
    def command(self) -> str:
        """What a person would type instead."""
        return " ".join(("python -m", f"jobs.{self.job}", *self.arguments))


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `contracts/schedule.yaml`."""

    rounds: Annotated[tuple[ScheduledRound, ...], msgspec.Meta(min_length=1)]


def load_schedule(path: Path) -> Schedule:
    """Read and check the schedule.

    Raises:
        ContractError: a key is unknown, a time is none, or two rounds have one name; names file and line.
    """
    document = load_located(path)
    try:
        schedule = msgspec.convert(document.value, Schedule)
    except msgspec.ValidationError as error:
        raise ContractError(document.describe(error)) from error
    for place, problem in _impossible(schedule):
        raise ContractError(f"{path}:{document.line_of(place)}: {problem}")
    return schedule


def _impossible(schedule: Schedule) -> list[tuple[str, str]]:
    """What types alone can't say: (place, problem) for each."""
    problems: list[tuple[str, str]] = []
    names: set[str] = set()
    for index, each in enumerate(schedule.rounds):
        place = f"$.rounds[{index}]"
        if each.name in names:
            problems.append((f"{place}.name", f"the round '{each.name}' is listed twice; give one another name"))
        names.add(each.name)
        try:
            period = each.cadence.period
        except ValueError as error:
            problems.append((f"{place}.when", str(error)))
            continue
        if each.jitter >= period:
            problems.append((f"{place}.jitter_minutes", f"'{each.name}' would skip a turn; keep it below {period}"))
    return problems
