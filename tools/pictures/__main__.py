"""Makes the pictures in docs/pictures again: a run of the demo, its report, pages of `make dev` and of the stack."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx2

from gamelake.command import command_parser
from gamelake.model.errors import StartupError
from gamelake.program import FAILED, OK, run
from services.portal.practice import PRACTICE
from tools.embedded.service import REPOSITORY
from tools.pictures.browser import python_and_chromium
from tools.pictures.terminal import animated, record, shortened
from tools.stack import OPERATOR, page, url

FOLDER = REPOSITORY / "docs/pictures"
PORTAL = "http://127.0.0.1:17000"
DEMO = ("make", "demo", "EVENTS=200000", "GAMES=5")
QUESTION = "How many events came from each game, hour by hour?"
_WIDTH, _HEIGHT, _HEIGHT_OF_FAULTS = 1200, 760, 1180
_SECONDS = 5
_ALL = ["demo", "pages", "faults"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pictures. Return the exit code.

    Raises:
        StartupError: Chromium is missing, or a program of the pictures does not run.
    """
    parser = command_parser(__doc__)
    parser.add_argument("what", nargs="*", choices=(*_ALL, []), help="some of them; default: all")
    chosen = parser.parse_args(arguments).what or _ALL
    FOLDER.mkdir(parents=True, exist_ok=True)
    if "pages" in chosen:
        _need_the_portal()
        _take(_pages_of_dev())
    if "faults" in chosen:
        _need_the_switchboard()
        address = f"{url('PORTAL_PORT')}{PRACTICE}"
        wait, height = "button:has-text('Switch')", _HEIGHT_OF_FAULTS
        _take([_task(address, "faults.png", wait, height=height, certificate=str(OPERATOR))])
    if "demo" in chosen:
        frames, code = record(DEMO, " ".join(DEMO), REPOSITORY)
        if code:
            print("\n".join(frames[-1].lines), file=sys.stderr)
            return FAILED
        title = "make demo in a terminal: players are simulated, their events ingested, every record is checked"
        (FOLDER / "demo.svg").write_text(animated(shortened(frames), title), encoding="utf-8")
        _take([_task(f"file://{REPOSITORY}/build/demo/report.html", "report.png", "svg")])
    print(f"the pictures are in {FOLDER.relative_to(REPOSITORY)}", flush=True)
    return OK


def _need_the_portal() -> None:
    try:
        httpx2.get(f"{PORTAL}/healthz", timeout=_SECONDS).raise_for_status()
    except httpx2.HTTPError as error:
        raise StartupError(f"{PORTAL} does not respond: start `make dev RATE=200 GAMES=5` and wait for rows") from error


def _need_the_switchboard() -> None:
    try:
        response = page("PORTAL_PORT", PRACTICE)
    except OSError as error:
        raise StartupError(f"the stack's portal does not respond: {error}; run `make up`") from error
    if "<button" not in response.text:
        raise StartupError("the stack's portal has no switches: start `gamelake switchboard`")


def _pages_of_dev() -> list[dict[str, object]]:
    return [
        # The figures of the games are read in the background; the page refreshes itself.
        _task(PORTAL, "portal.png", "#portfolio svg"),
        _task(f"{PORTAL}/questions", "question.png", "[role=status]", press=f"Run: {QUESTION}"),
    ]


def _task(address: str, name: str, wait: str, **others: object) -> dict[str, object]:
    usual = {"width": _WIDTH, "height": _HEIGHT, "press": "", "certificate": ""}
    return {"url": address, "file": str(FOLDER / name), "wait": wait} | usual | others


def _take(tasks: Sequence[dict[str, object]]) -> None:
    python, chromium = python_and_chromium()
    script = str(Path(__file__).parent / "pages.py")
    subprocess.run((python, script, chromium, json.dumps(tasks)), check=True)


if __name__ == "__main__":
    run(main)
