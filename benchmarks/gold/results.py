"""The results of the gold benchmark, as they are stored."""

from pathlib import Path

import msgspec
import numpy as np

from benchmarks.results import write_json


class RefreshComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One round: seconds of both approaches for the same new rows in all tables."""

    round: int
    ours: float
    spark: float


class Refreshes(msgspec.Struct, frozen=True, kw_only=True):
    """Refreshes of a table of one size after the same change: seconds of each, and the rows written."""

    grown: str
    factor: int
    silver_rows: int
    players: int
    seconds: tuple[float, ...]
    rows_written: int

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return float(np.median(self.seconds))


class GoldResults(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    measured_at: str
    commit: str
    cores: int
    cpu_model: str
    tables: int
    players: int
    new_rows: int
    races: tuple[RefreshComparison, ...]
    refreshes: tuple[Refreshes, ...]

    def of(self, grown: str) -> tuple[Refreshes, ...]:
        """The refreshes of tables in which `grown` grew, by size."""
        return tuple(sorted((each for each in self.refreshes if each.grown == grown), key=lambda each: each.factor))

    def slope(self, grown: str) -> float:
        """Exponent of the table's size in the time of a refresh; least squares over logarithms."""
        found = self.of(grown)
        factors = np.log([each.factor for each in found])
        return float(np.polyfit(factors, np.log([each.median for each in found]), 1)[0])


def save(results: GoldResults, folder: Path) -> Path:
    """Write the results under their date and commit, and as the latest."""
    return write_json(results, folder, f"gold-{results.measured_at[:10]}-{results.commit}", "gold-latest")
