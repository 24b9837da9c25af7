"""The results of the questions, as they are stored."""

from pathlib import Path
from statistics import median

import msgspec

from benchmarks.results import write_json


class QuestionTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of a question's first run and of the later ones; or why it was refused."""

    question: str
    first: float
    seconds: tuple[float, ...]
    refusal: str = ""

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return median(self.seconds) if self.seconds else float("inf")


class QuestionResults(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    measured_at: str
    commit: str
    cores: int
    cpu_model: str
    rows: int
    days: int
    players: int
    asked: tuple[QuestionTimes, ...]

    @property
    def slowest(self) -> float:
        """Seconds of the slowest question."""
        return max(each.median for each in self.asked)

    @property
    def median(self) -> float:
        """Median over the questions."""
        return median(each.median for each in self.asked)


def save(results: QuestionResults, folder: Path) -> Path:
    """Write the results under their date and commit, and as the latest."""
    return write_json(results, folder, f"questions-{results.measured_at[:10]}-{results.commit}", "questions-latest")
