"""A command in a terminal as an animated SVG: what it prints, at the times at which it did."""

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template

COLUMNS, ROWS = 110, 24
# Longer waits are cut to this.
LONGEST_PAUSE_SECONDS = 0.4
_SHORTEST_FRAME_SECONDS = 0.15
_LAST_FRAME_SECONDS = 6.0
_CHARACTER, _LINE, _MARGIN = 7.8, 18, 14
_CHUNK = 65_536
# Control sequences of ECMA-48: colours, and what moves the cursor.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

_PICTURE = Template("""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" role="img" aria-label="$title">
<title>$title</title>
<style>
text { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; fill: #e6e8eb; white-space: pre }
rect { fill: #14171a }
$rules
</style>
<defs>
$lines
</defs>
<rect width="$width" height="$height" rx="8"/>
$groups
</svg>
""")
_VISIBLE = Template("""\
@keyframes f$number { 0% { visibility: $first } $begins% { visibility: visible } $ends% { visibility: $last } }
#f$number { animation: f$number ${seconds}s step-end infinite; visibility: $last }""")


@dataclass(frozen=True, slots=True)
class TerminalFrame:
    """The content of the terminal from a time on, in seconds since the command's start."""

    at: float
    lines: tuple[str, ...]


@dataclass(slots=True)
class TerminalScreen:
    """The last lines of a terminal that knows line feeds and carriage returns; other controls are left out."""

    columns: int = COLUMNS
    rows: int = ROWS
    _lines: list[str] = field(default_factory=lambda: [""])
    _returned: bool = False

    def write(self, text: str) -> None:
        """Print text."""
        for part in re.split(r"(\r\n|\n|\r)", _CONTROL.sub("", text)):
            if part in {"\n", "\r\n"}:
                self._lines.append("")
                self._returned = False
            elif part == "\r":
                self._returned = True
            elif part:
                # A progress line is printed again from its first column on.
                self._lines[-1] = part if self._returned else self._lines[-1] + part
                self._returned = False
        del self._lines[: -self.rows]

    def lines(self) -> tuple[str, ...]:
        """Return the visible lines."""
        return tuple(line[: self.columns] for line in self._lines)


def record(command: Sequence[str], shown_as: str, folder: Path) -> tuple[list[TerminalFrame], int]:
    """Run a command; its frames as a terminal would show them, oldest first, and its exit code.

    Args:
        command: the program and its arguments.
        shown_as: what a person would type.
        folder: where it runs.
    """
    screen = TerminalScreen()
    screen.write(f"$ {shown_as}\r\n")
    frames = [TerminalFrame(0.0, screen.lines())]
    started = time.monotonic()
    # No terminal: a program that redraws parts of one would need more of it than `TerminalScreen` has.
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": str(COLUMNS), "PYTHONUNBUFFERED": "1"},
    ) as running:
        assert running.stdout is not None  # noqa: S101 # for the type checker
        while chunk := os.read(running.stdout.fileno(), _CHUNK):
            screen.write(chunk.decode("utf-8", "replace"))
            frames.append(TerminalFrame(time.monotonic() - started, screen.lines()))
    return frames, running.returncode


def shortened(frames: Sequence[TerminalFrame]) -> list[TerminalFrame]:
    """Return the frames with long waits cut, and without those that are visible for too short to be seen."""
    shorter = [TerminalFrame(0.0, frames[0].lines)]
    before, now = frames[0].at, 0.0
    for frame in frames[1:]:
        now += min(frame.at - before, LONGEST_PAUSE_SECONDS)
        before = frame.at
        if frame.lines == shorter[-1].lines:
            continue
        if now - shorter[-1].at < _SHORTEST_FRAME_SECONDS:
            shorter[-1] = TerminalFrame(shorter[-1].at, frame.lines)
        else:
            shorter.append(TerminalFrame(now, frame.lines))
    return shorter


def animated(frames: Sequence[TerminalFrame], title: str) -> str:
    """Render the frames as an SVG that repeats; without animations it shows the last one.

    Source: SVG 2, https://www.w3.org/TR/SVG2/, animated by CSS, https://www.w3.org/TR/css-animations-1/.
    """
    seconds = frames[-1].at + _LAST_FRAME_SECONDS
    ends = [frame.at for frame in frames[1:]] + [seconds]
    rules = [
        _VISIBLE.substitute(
            number=number,
            seconds=f"{seconds:.2f}",
            first="hidden" if number else "visible",
            begins=f"{100 * frame.at / seconds:.3f}",
            ends=f"{100 * end / seconds:.3f}",
            last="visible" if end == seconds else "hidden",
        )
        for number, (frame, end) in enumerate(zip(frames, ends, strict=True))
    ]
    # A line is in many frames, and in the file once.
    numbers = {
        line: number for number, line in enumerate(dict.fromkeys(line for each in frames for line in each.lines))
    }
    lines = [f'<text id="l{number}">{escape(line)}</text>' for line, number in numbers.items() if line.strip()]
    groups = [f'<g id="f{number}">{_uses(frame.lines, numbers)}</g>' for number, frame in enumerate(frames)]
    return _PICTURE.substitute(
        width=round(COLUMNS * _CHARACTER + 2 * _MARGIN),
        height=ROWS * _LINE + 2 * _MARGIN,
        title=escape(title),
        rules="\n".join(rules),
        lines="\n".join(lines),
        groups="\n".join(groups),
    )


def _uses(lines: Sequence[str], numbers: Mapping[str, int]) -> str:
    return "".join(
        f'<use href="#l{numbers[line]}" x="{_MARGIN}" y="{_MARGIN + (row + 1) * _LINE - 5}"/>'
        for row, line in enumerate(lines)
        if line.strip()
    )
