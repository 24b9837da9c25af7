"""Freshness: the delay from an event's ingest time to the commit that made it readable, for each row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.ledger.manifests import BatchManifest
from gamelake.model.naming import SILVER_EVENTS

_BINS = 40
_COLUMNS = ("game_name", "ingest_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessPercentiles:
    """The distribution of rows' delays, in seconds."""

    rows: int
    p50_seconds: float
    p95_seconds: float
    max_seconds: float

    @classmethod
    def of(cls, seconds: npt.NDArray[np.float64]) -> Self:
        """Return the percentiles of delays; 0 if there are no rows."""
        if not len(seconds):
            return cls(rows=0, p50_seconds=0, p95_seconds=0, max_seconds=0)
        p50, p95, most = np.quantile(seconds, [0.5, 0.95, 1]).round(3).tolist()
        return cls(rows=len(seconds), p50_seconds=p50, p95_seconds=p95, max_seconds=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Rows by delay: `rows[i]` rows have a delay from `i` to `i + 1` times `bin_seconds`."""

    bin_seconds: float
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays from ingest to commit, in seconds; one value per row.

    Attributes:
        games: delays of all rows, by `game_name`.
        once_running: delays of the rows that were ingested after the first commit.
        first_ingest: ingest time of the first row, in seconds since 1970.
    """

    games: Mapping[str, npt.NDArray[np.float64]]
    once_running: npt.NDArray[np.float64]
    first_ingest: float

    @property
    def all(self) -> npt.NDArray[np.float64]:
        """The delays of all games."""
        return np.concatenate([*self.games.values(), np.empty(0)])

    def histogram(self) -> Histogram:
        """Return a histogram of at most 41 bins of a round width."""
        every = self.all
        width = _readable(every.max() / _BINS) if len(every) else 1.0
        counts = np.bincount(np.floor(every / width).clip(0).astype(np.int64))
        return Histogram(bin_seconds=width, rows=tuple(counts.tolist()))


def _readable(width: float) -> float:
    """The smallest of 0.01, 0.02, 0.05, 0.1, ... that is at least the width."""
    return next(step for step in (d * 10.0**e for e in range(-2, 9) for d in (1, 2, 5)) if step >= width)


def delays_of(lakehouse: Path, committed: Iterable[tuple[BatchManifest, datetime]]) -> Delays:
    """Return the delays of the rows that batches added to `silver/events`.

    `committed` has the commit time of each batch.
    """
    found: dict[str, list[npt.NDArray[np.float64]]] = {}
    late_arrivals = [np.empty(0)]
    first_ingest, first_commit = np.inf, np.inf
    for manifest, committed_at in committed:
        first_commit = min(first_commit, committed_at.timestamp())
        for file in (file for entry in manifest.tables if entry.table == SILVER_EVENTS for file in entry.files):
            rows = pq.ParquetFile(lakehouse / SILVER_EVENTS / file.path).read(columns=list(_COLUMNS))
            ingested = rows.column("ingest_time").cast(pa.int64()).to_numpy() / 1e6
            first_ingest = min(first_ingest, float(ingested.min()))
            delays = committed_at.timestamp() - ingested
            late_arrivals.append(delays[ingested > first_commit])
            for game, of_game in _by_game(rows.column("game_name"), delays):
                found.setdefault(game, []).append(of_game)
    return Delays(
        {game: np.concatenate(parts) for game, parts in sorted(found.items())},
        np.concatenate(late_arrivals),
        first_ingest,
    )


def _by_game(names: pa.ChunkedArray, seconds: npt.NDArray[np.float64]) -> Iterable[tuple[str, npt.NDArray[np.float64]]]:
    encoded = pc.dictionary_encode(names).combine_chunks()
    numbers = encoded.indices.to_numpy()
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(encoded.dictionary)))[:-1]
    return zip(encoded.dictionary.to_pylist(), np.split(seconds[order], ends), strict=True)
