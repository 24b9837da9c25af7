"""Refreshes the segments after each run of gold. An error here never stops a gold table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gamelake.contract.games import load_games
from gamelake.model.logs import event_logger
from gamelake.serving.gold.runner import FailedRefresh
from gamelake.serving.players.contract import SEGMENTS_FILE, UsableSegments, usable_segments
from gamelake.serving.players.refresh import SegmentRefresh, SegmentsRefreshed
from gamelake.serving.players.tables import SEGMENTS

log = event_logger(__name__)


class SegmentsObserver(Protocol):
    """Is notified of refreshes. No method may raise."""

    def refreshed(self, result: SegmentsRefreshed, *, is_complete: bool) -> None:
        """Record a refresh; if it is not complete, at least one segment keeps its former members."""

    def failed(self) -> None:
        """Record a refresh that could not compute any segment."""


@dataclass(slots=True)
class SegmentKeeper:
    """Refreshes the segments after each run of gold, and reloads their file when it changes.

    Attributes:
        refresh: refreshes the segments.
        games_file: the games contract; the segments are in the same folder.
        observer: is notified of refreshes.
    """

    refresh: SegmentRefresh
    games_file: Path
    observer: SegmentsObserver
    _text: bytes | None = None
    _problems: dict[str, str] = field(default_factory=dict)

    def __call__(self) -> Sequence[FailedRefresh]:
        """Refresh once; return the failures."""
        failed = dict[str, str]()
        try:
            self._load()
        except Exception as error:  # keep the former segments
            failed[SEGMENTS_FILE] = str(error)
            log.exception("segments_refused", error=str(error), action="keeps the former segments; correct the file")
        try:
            done = self.refresh()
        except Exception as error:
            log.exception(
                "segments_failed",
                error=f"{type(error).__name__}: {error}",
                action="keeps the former members; the next run of gold tries again",
            )
            self.observer.failed()
            return [FailedRefresh(table=SEGMENTS.path, reason=str(error))]
        failed |= {**self._problems, **done.failed}
        self.observer.refreshed(done, is_complete=not failed)
        if done.moved:
            log.info("segments_refreshed", players=done.players, moved=done.moved, seconds=round(done.seconds, 1))
        return [FailedRefresh(table=SEGMENTS.path, reason=f"{name}: {why}") for name, why in failed.items()]

    def _load(self) -> None:
        """Reload the segments if their file has changed.

        Raises:
            ContractError: the file can't be used as a whole; names file and line.
        """
        file = self.games_file.with_name(SEGMENTS_FILE)
        text = file.read_bytes() if file.exists() else b""
        if text == self._text:
            return
        found = usable_segments(file, load_games(self.games_file)) if text else UsableSegments((), {})
        for name, problem in found.problems.items():
            log.error("segment_refused", segment=name, error=problem, action="keeps the segment's former members")
        self._problems = found.problems
        self.refresh.use(found.segments, tuple(found.problems))
        self._text = text
