"""The results of a benchmark: samples in one form for all benchmarks, one JSON file for each run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np

from gamelake.model.arrays import Floats
from tools.embedded.service import REPOSITORY

RESULTS = REPOSITORY / "benchmarks" / "results"
MILLION, MIB = 1_000_000, 2**20

# By the name of the figure, which contains its unit.
Values: TypeAlias = dict[str, float]


class BenchmarkError(Exception):
    """A measurement is invalid or could not be made; the message names the cause."""


class Measurement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measurement.

    Attributes:
        part: names the part of the benchmark; all samples of a part are in one table.
        subject: names what was measured: a pipeline, a query, a table.
        round: counts from 1.
        values: has the figures.
    """

    part: str
    subject: str
    values: Values
    round: int = 1


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine that figures were measured on, with versions by component."""

    cores: int
    cpu_model: str
    memory_bytes: int = 0
    system: str = ""
    versions: dict[str, str] = {}


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """A run: when (UTC) and at which commit, where, with which settings, and all samples in their order."""

    benchmark: str
    measured_at: str
    commit: str
    machine: Machine
    settings: dict[str, object]
    samples: tuple[Measurement, ...]

    def of(self, part: str, subject: str | None = None) -> list[Measurement]:
        """Return the samples of a part, or those of one of its subjects."""
        return [each for each in self.samples if each.part == part and subject in (None, each.subject)]

    def subjects(self, part: str) -> list[str]:
        """Return the subjects of a part in their order."""
        return list(dict.fromkeys(each.subject for each in self.of(part)))

    def values(self, part: str, subject: str, figure: str) -> list[float]:
        """Return a figure of each sample that has it."""
        return [each.values[figure] for each in self.of(part, subject) if figure in each.values]

    def figures(self, part: str) -> list[str]:
        """Return the names of a part's figures in their order."""
        return list(dict.fromkeys(name for each in self.of(part) for name in each.values))


def percentiles(seconds: Sequence[float] | Floats) -> Values:
    """Return how long most measurements took, half of them, and the longest."""
    p95, p50, most = np.percentile(seconds, [95, 50, 100])
    return {"p95 s": float(p95), "p50 s": float(p50), "max s": float(most)}


def save(results: Results, folder: Path, prefix: str = "") -> Path:
    """Write the results under benchmark, date and commit; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{prefix}{results.benchmark}-{results.measured_at[:10]}-{results.commit}.json"
    encoded = msgspec.structs.asdict(results) | {"samples": []}
    head = msgspec.json.format(msgspec.json.encode(encoded), indent=1).decode()
    lines = ",\n".join(f"  {msgspec.json.encode(each).decode()}" for each in results.samples)
    path.write_text(head.replace('"samples": []', f'"samples": [\n{lines}\n ]') + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Results:
    """Read results."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def latest(benchmark: str, folder: Path = RESULTS) -> Results:
    """Return the newest results of a benchmark.

    Raises:
        BenchmarkError: the folder has none.
    """
    runs: Sequence[Results] = [load(path) for path in folder.glob(f"{benchmark}-2*.json")]
    if not runs:
        raise BenchmarkError(f"{folder} has no results of {benchmark}: run the benchmark")
    return max(runs, key=lambda run: run.measured_at)
