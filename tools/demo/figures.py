"""The figures of a run: the content of `summary.json` and of the report."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from tools.demo.freshness import FreshnessPercentiles, Histogram
from tools.demo.key_figures import KeyFigures
from tools.demo.options import DemoError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParameters:
    """The parameters of the run."""

    events: int
    games: int
    versions: int
    rate: int
    seed: int
    max_records_per_batch: int
    started_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSample:
    """The run at `seconds` since its start; `produced` (in Kafka) and `taken` (committed) are records of this run."""

    seconds: float
    produced: int
    taken: int
    memory_bytes: int

    @property
    def lag(self) -> int:
        """Records in Kafka that are not in the tables yet."""
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
    """The work of the gateway for the games; request times are as the games measured them.

    Attributes:
        acknowledged: events, duplicates included.
        duplicates: events that were sent and acknowledged a second time.
        players: distinct players with an acknowledged event in this run.
        players_in_vault: players of all runs.
        personal_texts: number of personal texts that the tables were scanned for.
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
    """The rows that one game's table gained in this run; `rows_in_table` is of all runs."""

    game: str
    table: str
    rows: int
    files: int
    bytes: int
    bytes_per_row: float
    rows_in_table: int
    freshness: FreshnessPercentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times of the run's steps, in seconds since its start."""

    services_ready: float
    simulator_started: float
    first_event: float
    first_commit: float
    last_commit: float
    finished: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Totals of the run.

    Attributes:
        records_per_second: from the first event sent to the last one committed.
        records_per_busy_second: over the time in which a batch was decided or committed.
        peak_memory_bytes: of all processes together; shared pages count for each process.
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
class RunVerdict:
    """The result of the reconciliation: no problems, or a message for each."""

    problems: tuple[str, ...]
    batches_in_lakehouse: int
    records_in_lakehouse: int
    rows_in_lakehouse: int
    dead_letters_in_lakehouse: int
    duplicates_in_lakehouse: int
    quarantined_in_lakehouse: int = 0
    dropped_in_lakehouse: int = 0

    @property
    def is_consistent(self) -> bool:
        """True if there are no problems."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All figures of a run.

    Attributes:
        broken_rules: number of rows that broke each rule, whatever its severity.
        freshness_once_running: freshness of the rows that arrived after the first commit, when the job was running.
    """

    asked: RunParameters
    verdict: RunVerdict
    totals: Totals
    times: Times
    gateway: GatewayFigures
    freshness: FreshnessPercentiles
    freshness_once_running: FreshnessPercentiles
    histogram: Histogram
    games: tuple[GameFigures, ...]
    key_figures: KeyFigures
    dead_letters: Mapping[str, int]
    broken_rules: Mapping[str, int]
    batches: tuple[BatchFigures, ...]
    samples: tuple[RunSample, ...]

    def to_json(self) -> bytes:
        """Return the figures as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    @classmethod
    def from_json(cls, text: bytes) -> "Summary":
        """Read what `to_json` wrote.

        Raises:
            DemoError: the JSON has another form.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise DemoError(f"not the summary of a run ({error}); run make demo again") from error
