"""The display of `make dev`: a line for each program, updated on a terminal; printed at each change otherwise."""

from collections.abc import Sequence
from datetime import timedelta

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tools.dev.supervisor import ProgramState, ProgramStatus

_STYLES = {ProgramState.RUNNING: "green", ProgramState.PAUSED: "red"}


class DevScreen:
    """Writes to a terminal or a file."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._live: Live | None = None

    def print_line(self, text: str) -> None:
        """Print text that stays, above the programs' lines."""
        self._console.print(text, markup=False)

    def show(self, statuses: Sequence[ProgramStatus]) -> None:
        """Update the programs' lines, on a terminal."""
        if not self._console.is_terminal:
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(as_block(statuses), refresh=True)

    def rest(self) -> None:
        """Stop updating; the last lines stay."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def as_block(statuses: Sequence[ProgramStatus]) -> Table:
    """Render a line for each program."""
    block = Table.grid(padding=(0, 3))
    for each in statuses:
        style = _STYLES.get(each.state, "yellow")
        since = str(timedelta(seconds=int(each.seconds)))
        restarts = f"{each.restarts} restarts" if each.restarts else ""
        block.add_row(each.name, f"[{style}]{each.state}[/{style}]", since, restarts, each.detail or each.address)
    return block
