"""`make dev` runs until Ctrl-C, starts ended and changed programs again, and goes on with its data afterwards."""

import json
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
import urllib3

from services.sdk import Client
from tests.eventually import eventually
from tests.process_table import descendants_of, still_running
from tools.dev.options import DevOptions, DevPaths
from tools.embedded.java import spark_environment
from tools.embedded.ports import HOST, free_port
from tools.embedded.service import REPOSITORY
from tools.simulator.game_sdks import read_credentials

GAME = "archery_duel"
JARS = REPOSITORY / "build" / "jars" / "spark"
START_SECONDS, SECONDS = 300, 120
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_PYTHON = REPOSITORY / "build" / "browser" / "bin" / "python"
QUESTION = "events_per_hour"
# With a rate that is known.
RUNNING_STREAM = r'ingest_events</th><td><span class="good">runs</span></td><td class="number">\d'


@pytest.fixture(autouse=True)
def _jars(missing_service: Callable[[str], NoReturn]) -> None:
    if not JARS.is_dir():
        missing_service(f"{JARS} is missing: run `make setup`")


class Dev:
    """A running `make dev`; what it prints is in a file."""

    def __init__(self, running: "subprocess.Popen[bytes]", options: DevOptions, printed: Path) -> None:
        self.running = running
        self._options = options
        self._printed = printed

    @property
    def directory(self) -> Path:
        """Its data."""
        return self._options.directory

    @property
    def first_port(self) -> int:
        """The first of its ports."""
        return self._options.first_port

    @property
    def portal(self) -> str:
        """The address of the portal."""
        return f"http://{HOST}:{self._options.ports.portal}"

    def get(self, path: str) -> str:
        """A page of the portal."""
        return urllib3.request("GET", f"{self.portal}{path}", timeout=SECONDS).data.decode()

    def ask(self, question: str) -> str:
        """The page with a question's result, or with the reason why there is none."""
        return urllib3.request("POST", f"{self.portal}/questions/{question}", timeout=SECONDS).data.decode()

    def lines(self, name: str) -> list[str]:
        """What it has printed about a program."""
        return [line for line in self._printed.read_text().splitlines() if line.startswith(f"{name}: ")]

    def starts(self, name: str) -> int:
        """How often a program has become healthy."""
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
        """Send new events by the SDK, and wait until they are acknowledged; gives their ids."""
        ids = [str(uuid.uuid4()) for _ in range(count)]
        credentials = read_credentials(self._options.directory / "gateway" / "keys.yaml")[GAME]
        client = Client.connect(f"http://{HOST}:{self._options.ports.gateway}", credentials)
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


@contextmanager
def dev(directory: Path, first_port: int, *arguments: str) -> Iterator[Dev]:
    """Run it for as long as the block lasts."""
    options = DevOptions(directory=directory, first_port=first_port, rate=0, games=1)
    printed = directory.with_name("printed.txt")
    command = (sys.executable, "-m", "tools.dev", "--directory", str(directory), "--first-port", str(first_port))
    with (
        printed.open("wb") as out,
        subprocess.Popen((*command, *arguments), cwd=REPOSITORY, stdout=out, stderr=subprocess.STDOUT) as running,
    ):
        try:
            yield Dev(running, options, printed)
        finally:
            running.terminate()
            running.wait(SECONDS)


def ids_by_sql(directory: Path) -> list[str]:
    """The ids in the game's table, by DuckDB."""
    settings = {
        "GAMELAKE_LAKEHOUSE": DevPaths(directory).lakehouse.uri,
        "GAMELAKE_GAMES_FILE": "contracts/games.yaml",
        "GAMELAKE_SPARK_JARS": str(JARS),
    }
    sql = "SELECT event_id FROM silver.events WHERE game_name = 'Archery Duel' AND event_name = 'tap'"
    found = subprocess.run(
        (sys.executable, "-m", "jobs.ask", "--format", "json", sql),
        cwd=REPOSITORY,
        env={**spark_environment(), **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    # Before the first batch there are no tables.
    return [json.loads(line)["event_id"] for line in found.stdout.splitlines()] if found.returncode == 0 else []


def test_events_are_rows_once_over_kills_changes_and_starts(tmp_path: Path) -> None:
    directory, first_port = tmp_path / "my dev", free_port()

    with dev(directory, first_port) as first:
        first.wait_for_start()
        sent = first.send(20)
        eventually(lambda: sorted(first.rows()) == sorted(sent), SECONDS)

        job = first.pid_of("jobs.ingest_events")
        # As a process that the system kills for its memory.
        subprocess.run(("/bin/kill", "-KILL", str(job)), check=True)
        (REPOSITORY / "services" / "gateway" / "__main__.py").touch()
        eventually(lambda: first.starts("ingest") == first.starts("gateway") == 2, START_SECONDS)
        assert any(
            re.match(r"ingest: ended with exit code 137; starts again after 1 s", line)
            for line in first.lines("ingest")
        )
        assert "gateway: starts again, as __main__.py changed" in first.lines("gateway")
        assert len(first.lines("kafka")) == len(first.lines("registry")) == len(first.lines("portal")) == 1
        sent += first.send(20)
        eventually(lambda: sorted(first.rows()) == sorted(sent), SECONDS)
        first.stop()
    assert sorted(ids_by_sql(directory)) == sorted(sent)

    with dev(directory, first_port) as second:
        second.wait_for_start()
        sent += second.send(20)
        eventually(lambda: sorted(second.rows()) == sorted(sent), SECONDS)
        second.stop()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    """A running `make dev` with simulated players: leave it running."""
    directory, first_port = tmp_path_factory.mktemp("platform") / "dev", free_port()
    with dev(directory, first_port, "--rate", "20", "--games", "3") as running:
        running.wait_for_start()
        yield running


def test_the_portal_works_by_keyboard_for_screen_readers_and_without_a_script(
    platform: Dev, missing_service: Callable[[str], NoReturn]
) -> None:
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None or not BROWSER_PYTHON.exists():
        missing_service("Chromium or build/browser is missing: install the package chromium and run `make browser`")
    if not (REPOSITORY / "build/docs/site/index.html").exists():
        missing_service("the docs site is missing: run `make docs`")
    # The question finds rows once there are some.
    eventually(lambda: "<caption>Result" in platform.ask(QUESTION), START_SECONDS)
    script = REPOSITORY / "tests" / "portal_in_a_browser.py"

    ran = subprocess.run(
        (str(BROWSER_PYTHON), str(script), chromium, platform.portal), capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["violations"] == {"light": [], "dark": []}
    assert found["background_light"] != found["background_dark"]
    # No error, no script or style that the policy refuses, and nothing from other machines.
    assert found["problems"] == []
    assert {platform.portal} == {f"http://{host}" for host in found["hosts"]}
    assert found["refreshed"]
    assert found["without_portal"] == "Services"
    by_keyboard = found["by_keyboard"]
    assert by_keyboard["first_focus"] == "Skip to the content"
    assert by_keyboard["columns"] == ["hour", "game_name", "events"]
    assert re.fullmatch(r"(the first )?\d+ rows?", by_keyboard["status"])
    assert by_keyboard["violations"] == []
    assert re.fullmatch(r"(the first )?\d+ rows?", found["without_script"])
    assert not found["wider_than_a_phone"]
    assert found["lineage"] > 0
    documents = found["documents"]
    assert documents["diagrams"] > 0
    assert documents["not_drawn"] == 0
    assert documents["results"] > 0


def test_the_portal_has_the_health_and_figures_of_the_programs(platform: Dev) -> None:
    names = ("kafka", "registry", "gateway", "ingest", "gold", "kpis", "live_ops")

    def is_complete() -> bool:
        page = platform.get("/")
        healthy = all(f'<th scope="row">{name}</th><td><span class="good">responds' in page for name in names)
        return healthy and bool(
            re.search(r'ingest_events</th><td><span class="good">runs</span></td><td class="number">\d', page)
        )

    eventually(is_complete, SECONDS)


def test_a_second_make_dev_names_what_is_in_its_way(platform: Dev, tmp_path: Path) -> None:
    directory = platform.directory
    command = (sys.executable, "-m", "tools.dev", "--first-port", str(platform.first_port), "--directory")

    same = subprocess.run((*command, str(directory)), cwd=REPOSITORY, capture_output=True, text=True, check=False)
    other = subprocess.run(
        (*command, str(tmp_path / "other")), cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    removed = subprocess.run(
            (sys.executable, "-m", "tools.dev.clean", "--yes", "--directory", str(directory)),
            cwd=REPOSITORY, capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert same.returncode == other.returncode == removed.returncode == 1
    assert same.stderr == f"gamelake: make dev runs already in {directory}: end it by Ctrl-C first\n" == removed.stderr
    assert re.fullmatch(r"gamelake: another program listens on port \d+ of this machine: .+\n", other.stderr)
    assert directory.is_dir()
