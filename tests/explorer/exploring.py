"""Searches the schedules of a case for one that breaks what must hold, and shrinks it to a short one."""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from tests.explorer.world import Deviation, Faults, Schedule, UnknownOptionError, World

_RUNS_TO_SHRINK = 5_000

# A case sets up processes in a world, and returns the check to make after the run, which raises AssertionError.
Case = Callable[[World], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a case: its schedule, how many options each point had, the failure if any, and what happened."""

    schedule: Schedule
    widths: tuple[int, ...]
    failure: str
    trace: tuple[str, ...]


def run(case: Case, schedule: Schedule, faults: Faults) -> Run:
    world = World(schedule, faults)
    failure = ""
    try:
        check = case(world)
        world.run()
        check()
    except AssertionError as error:
        failure = str(error) or "assertion failed"
    return Run(schedule, tuple(world.widths), failure, tuple(world.trace))


def exhaustive(case: Case, faults: Faults, deviations: int) -> Iterator[Run]:
    """Run every schedule with at most this many deviations from the default."""
    waiting: list[Schedule] = [()]
    while waiting:
        schedule = waiting.pop()
        done = run(case, schedule, faults)
        yield done
        if len(schedule) < deviations:
            first = schedule[-1].point + 1 if schedule else 0
            waiting += [
                (*schedule, Deviation(point, option))
                for point in range(first, len(done.widths))
                for option in range(1, done.widths[point])
            ]


def sampled(case: Case, faults: Faults, count: int, deviations: int, seed: int = 0) -> Iterator[Run]:
    """Run random schedules with at most this many deviations; the same ones for a seed."""
    chance = random.Random(seed)  # no secret
    first_widths = run(case, (), faults).widths
    for _ in range(count):
        schedule: Schedule = ()
        widths = first_widths
        for _ in range(chance.randint(1, deviations)):
            first = schedule[-1].point + 1 if schedule else 0
            points = [point for point in range(first, len(widths)) if widths[point] > 1]
            if not points:
                break
            point = chance.choice(points)
            schedule = (*schedule, Deviation(point, chance.randrange(1, widths[point])))
            done = run(case, schedule, faults)
            widths = done.widths
            yield done


def shrink(case: Case, found: Run, faults: Faults) -> Run:
    """A failing run with as few deviations as can be found.

    Deviations are left out one by one. As that moves the later points, all schedules with fewer deviations are run
    then, first those with one, up to a number of runs.
    """
    best = found
    while (shorter := _failing_without_one(case, best, faults)) is not None:
        best = shorter
    left = _RUNS_TO_SHRINK
    for deviations in range(1, len(best.schedule)):
        for each in islice(exhaustive(case, faults, deviations), left):
            left -= 1
            if each.failure:
                return each
    return best


def _failing_without_one(case: Case, found: Run, faults: Faults) -> Run | None:
    for number in range(len(found.schedule)):
        try:
            each = run(case, found.schedule[:number] + found.schedule[number + 1 :], faults)
        except UnknownOptionError:
            continue
        if each.failure:
            return each
    return None


def explore(runs: Iterator[Run], case: Case, faults: Faults) -> int:
    """Run all, and count them.

    Raises:
        AssertionError: one of them broke what must hold; the message has the shrunk schedule and what happened in it.
    """
    count = 0
    for count, done in enumerate(runs, 1):
        if done.failure:
            least = shrink(case, done, faults)
            schedule = ", ".join(f"Deviation({each.point}, {each.option})" for each in least.schedule)
            story = "\n".join(least.trace)
            raise AssertionError(f"{least.failure}\nafter {count} schedules, by ({schedule},):\n{story}")
    return count


def effort(count: int) -> int:
    """Return how many schedules to try: times SCHEDULES_FACTOR, which `make test-long` sets."""
    return count * int(os.environ.get("SCHEDULES_FACTOR", "1"))
