"""A run of the demo in figures: what `summary.json` says and the page shows."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from tools.demo.freshness import Freshness, Histogram
from tools.demo.key_figures import KeyFigures
from tools.demo.options import DemoError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the run was asked for."""

    events: int
    games: int
    versions: int
    rate: int
    seed: int
    max_records_per_batch: int
    started_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The run at one moment, in seconds since its start; `produced` and `taken` are records of this run."""

    seconds: float
    produced: int
    taken: int
    memory_bytes: int

    @property
    def lag(self) -> int:
        """Records that Kafka has and the tables do not."""
        return self.produced - self.taken


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFigures:
    """One batch; `ended` is in seconds since the run's start."""

    batch: int
    ended: float
    records: int
    dead_letters: int
    tables: int
    files: int
    bytes: int
    decide_seconds: float
    commit_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayFigures:
    """What the games have heard from the gateway; request times are as the games measured them.

    Args:
        acknowledged: events, duplicates included.
        duplicates: events that were sent again although they had been acknowledged, and were acknowledged again.
        players: people of whom an event was acknowledged in this run.
        players_in_vault: of all runs.
        personal_texts: so many texts about people were looked for in the tables.
    """

    acknowledged: int
    acknowledged_per_second: int
    duplicates: int
    rejected: Mapping[str, int]
    requests: int
    retries: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    players: int
    players_in_vault: int
    personal_texts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GameFigures:
    """What one game's table gained in this run."""

    game: str
    table: str
    rows: int
    files: int
    bytes: int
    bytes_per_row: float
    rows_in_table: int
    freshness: Freshness


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When what was done, in seconds since the run's start."""

    services_ready: float
    simulator_started: float
    first_event: float
    first_commit: float
    last_commit: float
    finished: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The run as a whole.

    Args:
        records_per_second: from the first event sent to the last one committed.
        records_per_busy_second: while a batch was being decided or committed.
        peak_memory_bytes: of all processes together, pages that they share counted for each.
    """

    records: int
    rows: int
    dead_letters: int
    duplicates: int
    quarantined: int = 0
    dropped: int = 0
    bytes: int
    files: int
    records_per_second: float
    records_per_busy_second: float
    peak_memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether everything adds up: it does if there are no problems."""

    problems: tuple[str, ...]
    batches_in_lakehouse: int
    records_in_lakehouse: int
    rows_in_lakehouse: int
    dead_letters_in_lakehouse: int
    duplicates_in_lakehouse: int
    quarantined_in_lakehouse: int = 0
    dropped_in_lakehouse: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All figures of a run.

    Args:
        broken_rules: so many rows broke which rule, whatever became of them.
        freshness_once_running: of the rows that arrived after the first commit, when no row waited for a start.
    """

    asked: Asked
    verdict: Verdict
    totals: Totals
    times: Times
    gateway: GatewayFigures
    freshness: Freshness
    freshness_once_running: Freshness
    histogram: Histogram
    games: tuple[GameFigures, ...]
    key_figures: KeyFigures
    dead_letters: Mapping[str, int]
    broken_rules: Mapping[str, int]
    batches: tuple[BatchFigures, ...]
    samples: tuple[Sample, ...]

    def to_json(self) -> bytes:
        """Write the figures for a program."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    @classmethod
    def from_json(cls, text: bytes) -> "Summary":
        """Read what `to_json` wrote.

        Raises:
            DemoError: it is of another form.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise DemoError(f"no figures of a run ({error}); run make demo again") from error
