"""The maintenance schedule (`contracts/schedule.yaml`): which task runs when."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contract.located_yaml import declaration, load_declaration, raise_first

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The epoch was a Thursday.
_DAYS_OF_THE_EPOCH = ("thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday")
_FORMS = "say 'daily at 01:15', 'weekly on sunday at 02:30', 'every 6 hours' or 'every 30 minutes'; times are UTC"
TaskName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
JobName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]


@dataclass(frozen=True, slots=True)
class Cadence:
    """Times at equal distances: one of them, and the period."""

    one: datetime
    period: timedelta

    def after(self, moment: datetime) -> datetime:
        """Return the first of the times after a moment."""
        return self.one + ((moment - self.one) // self.period + 1) * self.period


def parse_cadence(text: str) -> Cadence:
    """Parse a time of the schedule, such as `daily at 01:15`.

    Raises:
        ValueError: the text has none of the known forms; the message lists them.
    """
    words = " ".join(text.lower().split())
    if found := re.fullmatch(r"daily at ([01]\d|2[0-3]):([0-5]\d)", words):
        return Cadence(_EPOCH + _time(found[1], found[2]), timedelta(days=1))
    if found := re.fullmatch(rf"weekly on ({'|'.join(_DAYS_OF_THE_EPOCH)}) at ([01]\d|2[0-3]):([0-5]\d)", words):
        day = timedelta(days=_DAYS_OF_THE_EPOCH.index(found[1]))
        return Cadence(_EPOCH + day + _time(found[2], found[3]), timedelta(weeks=1))
    if found := re.fullmatch(r"every ([1-9]\d{0,3}) (minutes|hours)", words):
        return Cadence(_EPOCH, timedelta(**{found[2]: int(found[1])}))
    raise ValueError(f"'{text}' is not a time of a schedule; {_FORMS}")


def _time(hour: str, minute: str) -> timedelta:
    return timedelta(hours=int(hour), minutes=int(minute))


class ScheduledTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task: a program with its arguments, and when it runs."""

    name: TaskName
    when: str
    job: JobName
    arguments: tuple[str, ...] = ()
    jitter_minutes: Annotated[int, msgspec.Meta(ge=0, le=1_440)] = 0
    at_most_hours: Annotated[float, msgspec.Meta(gt=0, le=168)] = 6

    @property
    def cadence(self) -> Cadence:
        """The times at which it runs, without the jitter."""
        return parse_cadence(self.when)

    @property
    def jitter(self) -> timedelta:
        """The longest delay of its start."""
        return timedelta(minutes=self.jitter_minutes)

    @property
    def at_most(self) -> timedelta:
        """The longest time that a run may take."""
        return timedelta(hours=self.at_most_hours)

    @property
    def command(self) -> str:
        """The command line that does the same."""
        return " ".join(("python -m", f"jobs.{self.job}", *self.arguments))


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `contracts/schedule.yaml`."""

    tasks: Annotated[tuple[ScheduledTask, ...], msgspec.Meta(min_length=1)]


@declaration
def load_schedule(path: Path) -> Schedule:
    """Read and check the schedule.

    Raises:
        ContractError: a key is unknown, a time can't be parsed, or two tasks have the same name; the message names
            file and line.
    """
    schedule, document = load_declaration(path, Schedule)
    raise_first(_problems(schedule), document)
    return schedule


def _problems(schedule: Schedule) -> list[tuple[str, str]]:
    """What types can't check: (JSON path, problem) for each."""
    problems: list[tuple[str, str]] = []
    names: set[str] = set()
    for index, each in enumerate(schedule.tasks):
        place = f"$.tasks[{index}]"
        if each.name in names:
            problems.append((f"{place}.name", f"the task '{each.name}' is listed twice; rename one of them"))
        names.add(each.name)
        try:
            period = each.cadence.period
        except ValueError as error:
            problems.append((f"{place}.when", str(error)))
            continue
        if each.jitter >= period:
            problems.append((f"{place}.jitter_minutes", f"'{each.name}' would skip a run; keep it below {period}"))
    return problems
