"""Declares a benchmark, and runs it: options, temporary folder, results, goals, and the tables in the documents."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec

from benchmarks.documents import Report, goals_table, subjects_table
from benchmarks.goals import Goal, number
from benchmarks.machine import short_commit, this_machine
from benchmarks.results import RESULTS, BenchmarkError, Measurement, Results, Values, save
from gamelake.model.errors import GamelakeError
from tools.embedded import ServiceError
from tools.embedded.java import spark_environment
from tools.embedded.service import REPOSITORY

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PARTIAL = REPOSITORY / "build" / "benchmarks"

S = TypeVar("S", bound="DataclassInstance")
Emit: TypeAlias = Callable[[str], None]


def option(default: Any, text: str, choices: Sequence[str] = ()) -> Any:  # noqa: ANN401 # as `dataclasses.field`
    """Declare a field of settings that the command line has as an option; a tuple takes several words."""
    return field(default=default, metadata={"help": text, "choices": choices})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Generic[S]):
    """One run: its settings, an empty folder for its files, and what prints a line of progress."""

    settings: S
    folder: Path
    emit: Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(Generic[S]):
    """A benchmark.

    Attributes:
        name: of its results, and of its comments in the documents.
        measures: says what it measures, for `--help`.
        settings: has the default of each option.
        measure: runs it, and yields each sample.
        goals: are the figures with bounds.
        report: has its sections of the documents; without one, results are only printed.
        quick: has the settings of `--quick`, which checks the benchmark itself.
        is_partial: returns True for settings whose results don't belong in the documents.
        needs_goals: makes a missed goal an error, but not of a quick run.
        runs_spark: finds Java for Spark first.
    """

    name: str
    measures: str
    settings: S
    measure: Callable[[Run[S]], Iterable[Measurement]]
    goals: Sequence[Goal] = ()
    report: Report | None = None
    quick: S | None = None
    is_partial: Callable[[S], bool] = lambda _: False
    needs_goals: bool = False
    runs_spark: bool = False

    @property
    def program(self) -> str:
        """The command's name in messages."""
        return f"benchmarks {self.name}"


def main(benchmark: Benchmark[S], words: Sequence[str] | None = None) -> int:
    """Run a benchmark with the options of the command line.

    Args:
        benchmark: to run.
        words: of the command line; the default is this process's.

    Returns:
        0, or 1 if it failed or, where goals are needed and the run is not quick, missed one.
    """
    settings, out, is_quick = _parsed(benchmark, words)
    is_whole = not is_quick and not benchmark.is_partial(settings)
    try:
        results = run(benchmark, settings)
    except (BenchmarkError, GamelakeError, ServiceError, OSError) as error:
        print(f"{benchmark.program}: {error}", file=sys.stderr)
        return 1
    folder = out or (RESULTS if is_whole and benchmark.report else PARTIAL)
    print(f"results are in {save(results, folder, '' if is_whole else 'part-')}\n")
    print(summary(benchmark, results))
    if is_whole and benchmark.report and folder == RESULTS:
        benchmark.report.write(results, REPOSITORY / "docs")
    return int(benchmark.needs_goals and not is_quick and not all(goal.is_reached(results) for goal in benchmark.goals))


def run(benchmark: Benchmark[S], settings: S) -> Results:
    """Measure in a folder of build/benchmarks, which stays if the benchmark fails.

    Raises:
        BenchmarkError: a measurement is invalid or could not be made.
        GamelakeError, ServiceError, OSError: from the platform and the services.
    """
    started, measured_at = time.monotonic(), datetime.now(UTC)
    if benchmark.runs_spark:
        os.environ |= spark_environment()
    folder = PARTIAL / f"{benchmark.name}-{os.getpid()}"
    folder.mkdir(parents=True)

    def emit(line: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {line}", file=sys.stderr, flush=True)

    samples = tuple(
        msgspec.structs.replace(each, values={name: round(float(value), 4) for name, value in each.values.items()})
        for each in benchmark.measure(Run(settings=settings, folder=folder, emit=emit))
    )
    shutil.rmtree(folder)
    return Results(
        benchmark=benchmark.name,
        measured_at=measured_at.isoformat(timespec="seconds"),
        commit=short_commit(REPOSITORY),
        machine=this_machine(),
        settings=asdict(settings),
        samples=samples,
    )


def summary(benchmark: Benchmark[S], results: Results) -> str:
    """Return a table for each part of the results, and one of the goals."""
    parts = dict.fromkeys(each.part for each in results.samples)
    tables = [subjects_table(part, part)(results) for part in parts]
    return "\n\n".join([*tables, *([goals_table(benchmark.goals)(results)] if benchmark.goals else [])])


def alternate(
    part: str,
    subjects: Mapping[str, Callable[[int], Values]],
    rounds: int,
    emit: Emit,
    warm_up: int = 1,
) -> Iterator[Measurement]:
    """Measure each subject once a round, in reverse order every other round: a slower machine slows all of them.

    Args:
        part: of the results.
        subjects: measure the figures; each gets the number of the round, which is below 1 for a warm-up.
        rounds: to yield.
        emit: gets a line for each measurement.
        warm_up: rounds before them.
    """
    for number_of_round in range(1 - warm_up, rounds + 1):
        order = list(subjects.items())
        for subject, measure in order if number_of_round % 2 else reversed(order):
            values = measure(number_of_round)
            figure, value = next(iter(values.items()))
            emit(f"{part}, round {number_of_round}: {subject}: {number(value)} {figure}")
            if number_of_round > 0:
                yield Measurement(part=part, subject=subject, round=number_of_round, values=values)


def _parsed(benchmark: Benchmark[S], words: Sequence[str] | None) -> tuple[S, Path | None, bool]:
    """The settings, the folder for the results if one is given, and True for a quick run."""
    module = sys.modules["__main__"].__spec__
    parser = argparse.ArgumentParser(
        prog=f"python -m {module.name.removesuffix('.__main__')}" if module else None,
        description=benchmark.measures,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for each in fields(benchmark.settings):
        _add(parser, f"--{each.name.replace('_', '-')}", getattr(benchmark.settings, each.name), each.metadata)
    parser.add_argument("--out", type=Path, help="folder for the results", default=None)
    if benchmark.quick is not None:
        parser.add_argument("--quick", action="store_true", help="measure little, to check the benchmark itself")
        if parser.parse_args(words).quick:
            parser.set_defaults(**asdict(benchmark.quick))
    given = vars(parser.parse_args(words))
    out, is_quick = given.pop("out"), given.pop("quick", False)
    lists = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return type(benchmark.settings)(**lists), out, is_quick


def _add(parser: argparse.ArgumentParser, name: str, default: object, metadata: Mapping[str, Any]) -> None:
    text = metadata.get("help", "")
    if isinstance(default, bool):
        parser.add_argument(name, action="store_true", help=text)
    elif isinstance(default, tuple):
        kind = type(default[0]) if default else str
        choices = metadata.get("choices") or None
        parser.add_argument(name, type=kind, nargs="+", default=default, choices=choices, help=text)
    else:
        parser.add_argument(name, type=type(default), default=default, help=text)
