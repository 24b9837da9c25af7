"""The display while the demo runs: a block that is updated on a terminal, a line every five seconds otherwise."""

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

LINE_EVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Progress of the run; `taken` are committed records, `records_per_second` is over the last seconds."""

    seconds: float
    goal: int
    produced: int
    taken: int
    records_per_second: float
    tables: int
    dead_letters: int
    batches: int

    @property
    def lag(self) -> int:
        """Records in Kafka that are not committed."""
        return self.produced - self.taken


class Screen:
    """Writes to a terminal or a file."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._shown = 0.0

    def __enter__(self) -> Self:
        """Nothing is displayed yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop updating; the last block stays."""
        self.rest()

    def print_line(self, text: str) -> None:
        """Print text that stays."""
        self._console.print(text, markup=False)

    def show(self, status: RunStatus) -> None:
        """Display the progress."""
        if self._console.is_terminal:
            self._rewrite(status)
        elif time.monotonic() - self._shown >= LINE_EVERY_SECONDS:
            self._shown = time.monotonic()
            self.print_line(as_line(status))

    def rest(self) -> None:
        """Stop updating the block."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _rewrite(self, status: RunStatus) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(as_block(status), refresh=True)


def as_line(status: RunStatus) -> str:
    """Render the status for a log."""
    return (
        f"{status.seconds:5.0f} s  produced {status.produced:,}  committed {status.taken:,}  "
        f"{status.records_per_second:,.0f}/s  lag {status.lag:,}  tables {status.tables}  "
        f"dead letters {status.dead_letters:,}"
    )


def as_block(status: RunStatus) -> Table:
    """Render the status for a terminal."""
    block = Table.grid(padding=(0, 3))
    for _ in range(4):
        block.add_column(justify="right", min_width=12)
    for labels, values in (
        (("produced", "committed", "lag", "rows/s"), _large(status)),
        (("batches", "tables", "dead letters", "seconds"), _small(status)),
    ):
        block.add_row(*(f"[dim]{label}[/dim]" for label in labels))
        block.add_row(*(f"[bold]{value}[/bold]" for value in values))
    block.add_row(_bar(status.taken / max(status.goal, status.produced, 1)))
    return block


def _large(status: RunStatus) -> tuple[str, ...]:
    return tuple(f"{number:,.0f}" for number in (status.produced, status.taken, status.lag, status.records_per_second))


def _small(status: RunStatus) -> tuple[str, ...]:
    return tuple(f"{number:,.0f}" for number in (status.batches, status.tables, status.dead_letters, status.seconds))


def _bar(share: float) -> str:
    return f"[bold]{share:.0%}[/bold] committed"
