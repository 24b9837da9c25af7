"""A running `make dev`, of this repository or of a copy of it, and what a game sends to it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import urllib3

from services.sdk import Client
from tests.support.eventually import eventually
from tests.support.pages import Snippet
from tests.support.process_table import descendants_of, still_running
from tools.dev.options import DevOptions, DevPaths
from tools.embedded.java import spark_environment
from tools.embedded.ports import HOST
from tools.embedded.service import REPOSITORY
from tools.simulator.game_sdks import read_credentials

GAME = "archery_duel"
JARS = REPOSITORY / "build" / "jars" / "spark"
START_SECONDS, SECONDS = 300, 120


class Dev:
    """A running `make dev`; what it prints is in a file."""

    def __init__(self, running: "subprocess.Popen[bytes]", options: DevOptions, printed: Path) -> None:
        self.running = running
        self._options = options
        self._printed = printed

    @property
    def directory(self) -> Path:
        return self._options.directory

    @property
    def first_port(self) -> int:
        return self._options.first_port

    @property
    def portal(self) -> str:
        return f"http://{HOST}:{self._options.ports.portal}"

    def get(self, path: str) -> str:
        return urllib3.request("GET", f"{self.portal}{path}", timeout=SECONDS).data.decode()

    def ask(self, question: str) -> str:
        """The page with a question's result, or with the reason why there is none."""
        return urllib3.request("POST", f"{self.portal}/questions/{question}", timeout=SECONDS).data.decode()

    @property
    def printed(self) -> str:
        return self._printed.read_text()

    def lines(self, name: str) -> list[str]:
        """What it has printed about a program."""
        return [line for line in self._printed.read_text().splitlines() if line.startswith(f"{name}: ")]

    def starts(self, name: str) -> int:
        """Return how often a program has become healthy."""
        return sum("running after" in line for line in self.lines(name))

    def wait_for_start(self) -> None:
        """Wait until all programs are healthy."""
        eventually(lambda: "All programs run" in self._text(), START_SECONDS)

    def pid_of(self, module: str) -> int:
        """The process of a program, not the tether that started it."""
        for pid in sorted(descendants_of(self.running.pid)):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[1:3] == [b"-m", module.encode()]:
                return pid
        raise AssertionError(f"no process of {module}")

    def send(self, count: int) -> list[str]:
        """Send new events by the SDK, and wait until they are acknowledged. Return their ids."""
        ids = [str(uuid.uuid4()) for _ in range(count)]
        credentials = read_credentials(self._options.directory / "gateway" / "keys.yaml")[GAME]
        client = Client.connect(f"http://{HOST}:{self._options.ports.gateway[0]}", credentials)
        for each in ids:
            client.send(
                {"event_id": each, "event_name": "tap", "gamer_id": "a-player", "event_time": datetime.now(UTC)}
            )
        assert client.flush(timeout=timedelta(seconds=SECONDS))
        client.close()
        return ids

    def rows(self) -> list[str]:
        """The ids in the game's table, as `make sql ENGINE=duckdb ON=dev` reads them."""
        return ids_by_sql(self._options.directory)

    def stop(self) -> None:
        """End it by Ctrl-C, and check that it leaves no process."""
        children = descendants_of(self.running.pid)
        self.running.send_signal(signal.SIGINT)
        assert self.running.wait(SECONDS) == 0, self._text()
        eventually(lambda: not still_running(children))

    def _text(self) -> str:
        assert self.running.poll() in {None, 0}, self._printed.read_text()
        return self._printed.read_text()


def copy_of_repository(target: Path) -> Path:
    """Copy the repository, with its changes; what `make setup` has made is linked."""
    git = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(git, cwd=REPOSITORY, capture_output=True, check=True).stdout.decode()
    for name in listed.split("\0"):
        if name.endswith("/") or not (REPOSITORY / name).is_file():
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, target / name)
    (target / "build").mkdir()
    for made in (".venv", "build/docs", "build/jars", "build/native", "build/registry"):
        (target / made).symlink_to(REPOSITORY / made)
    return target


@contextmanager
def dev(directory: Path, first_port: int, *arguments: str, repository: Path = REPOSITORY) -> Iterator[Dev]:
    """Run it for as long as the block lasts, from this repository or a copy of it."""
    options = DevOptions(directory=directory, first_port=first_port, rate=0, games=1)
    printed = directory.with_name("printed.txt")
    command = (sys.executable, "-m", "tools.dev", "--directory", str(directory), "--first-port", str(first_port))
    with (
        printed.open("wb") as out,
        subprocess.Popen(
            (*command, *arguments),
            cwd=repository,
            env={**os.environ, "PYTHONPATH": str(repository)},
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as running,
    ):
        try:
            yield Dev(running, options, printed)
        finally:
            running.terminate()
            running.wait(SECONDS)


def ids_by_sql(directory: Path) -> list[str]:
    """The ids in the game's table, by DuckDB."""
    sql = "SELECT event_id FROM silver.events WHERE game_name = 'Archery Duel' AND event_name = 'tap'"
    return [json.loads(line)["event_id"] for line in (printed_by_sql(directory, sql, "jsonl") or "").splitlines()]


def printed_by_sql(directory: Path, sql: str, form: str = "table", repository: Path = REPOSITORY) -> str | None:
    """What `make sql ENGINE=duckdb ON=dev` prints; None while there is no such table."""
    settings = {
        "GAMELAKE_LAKEHOUSE": DevPaths(directory).lakehouse.uri,
        "GAMELAKE_GAMES_FILE": "contracts/games.yaml",
        "GAMELAKE_SPARK_JARS": str(JARS),
    }
    found = subprocess.run(
        (sys.executable, "-m", "jobs.ask", "--format", form, sql),
        cwd=repository,
        env={**os.environ, **spark_environment(), **settings, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout if found.returncode == 0 else None


@dataclass(frozen=True, slots=True)
class Reader:
    """Follows a page in a copy of the repository in which `make dev` runs, at other ports than the page has."""

    repository: Path
    platform: Dev

    def follow(self, some: Sequence[Snippet]) -> None:
        """Run each command, wait for the result of each query, and add each text that has a file to it."""
        for number, each in enumerate(some):
            shown = some[number + 1].text if number + 1 < len(some) and some[number + 1].language == "text" else ""
            if each.files:
                each.add_to_files(self.repository)
            elif each.is_query:
                # A file of the contract that was changed before it has our programs start again.
                eventually(partial(self._prints, each.query, shown), START_SECONDS)
            elif each.language == "sh":
                assert shown in self.run(each.text)

    def _prints(self, query: str, shown: str) -> bool:
        return printed_by_sql(self.platform.directory, query, repository=self.repository) == shown

    def run(self, commands: str, seconds: float = SECONDS) -> str:
        """Run commands of a page in the copy of the repository, and return what they print."""
        first = self.platform.first_port
        commands = re.sub(r"(?<=127\.0\.0\.1:)17(\d{3})", lambda port: str(first + int(port[1])), commands)
        run = subprocess.run(
            ("/bin/bash", "-euo", "pipefail", "-c", commands),
            cwd=self.repository,
            env={**os.environ, "PYTHONPATH": str(self.repository)},
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        assert run.returncode == 0, f"{commands}\n{run.stdout}{run.stderr}"
        return run.stdout
