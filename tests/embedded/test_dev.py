"""`make dev` runs until Ctrl-C, starts ended and changed programs again, and continues with its data afterwards."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from gamelake.model.errors import StartupError
from tests.embedded.dev import JARS, SECONDS, START_SECONDS, Dev, Reader, copy_of_repository, dev, ids_by_sql
from tests.support.eventually import eventually
from tests.support.html_tables import rows_of
from tests.support.pages import snippets
from tools.dev.options import DevPaths, DevPorts
from tools.dev.programs import settings_of_maintenance
from tools.embedded.ports import free_ports
from tools.embedded.service import CONTRACTS, REPOSITORY
from tools.pictures.browser import python_and_chromium

PORTS = len(DevPorts(0).all)
QUESTION = "events_per_hour"
HOW_TO = sorted(str(page.relative_to(REPOSITORY)) for page in REPOSITORY.glob("docs/how-to/*.md"))
# Each page has programs start again; that of a game shows most things that the others rely on.
SHORT_PAGE = "docs/how-to/add-a-game.md"


@pytest.fixture(autouse=True)
def _jars(missing_service: Callable[[str], NoReturn]) -> None:
    if not JARS.is_dir():
        missing_service(f"{JARS} is missing: run `make setup`")


# It starts the platform twice.
@pytest.mark.slow
def test_events_are_rows_once_over_kills_changes_and_starts(tmp_path: Path) -> None:
    directory, first_port = tmp_path / "my dev", free_ports(PORTS)

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
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A running `make dev` with simulated players: leave it running.

    It runs in a copy of the repository, whose path has spaces. The files are changed already as the how-to pages say.
    """
    repository = copy_of_repository(tmp_path_factory.mktemp("platform") / "my games" / "gl 2")
    for each in (snippet for page in HOW_TO for snippet in snippets(page)):
        if each.text.startswith("cp "):
            subprocess.run(("/bin/bash", "-ec", each.text), cwd=repository, check=True)
        each.add_to_files(repository)
    with dev(
        repository / "build" / "dev", free_ports(PORTS), "--rate", "20", "--games", "3", repository=repository
    ) as running:
        running.wait_for_start()
        yield Reader(repository, running)


@pytest.fixture
def platform(reader: Reader) -> Dev:
    return reader.platform


def test_the_portal_works_by_keyboard_for_screen_readers_and_without_a_script(
    platform: Dev, missing_service: Callable[[str], NoReturn]
) -> None:
    try:
        python, chromium = python_and_chromium()
    except StartupError as error:
        missing_service(str(error))
    if not (REPOSITORY / "build/docs/site/index.html").exists():
        missing_service("the docs site is missing: run `make docs`")
    # The question finds rows once there are some.
    eventually(lambda: "<caption>Result" in platform.ask(QUESTION), START_SECONDS)
    script = REPOSITORY / "tests" / "support" / "portal_in_a_browser.py"

    ran = subprocess.run((python, str(script), chromium, platform.portal), capture_output=True, text=True, check=False)

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
    assert by_keyboard["columns"] == ["hour", "game name", "events"]
    assert re.fullmatch(r"(The first )?\d+ rows?(; there are more)?", by_keyboard["status"])
    assert by_keyboard["violations"] == []
    assert re.fullmatch(r"(The first )?\d+ rows?(; there are more)?", found["without_script"])
    assert not found["wider_than_a_phone"]
    assert found["cut_off"] == []
    assert found["lineage_text"] >= 11
    assert found["load"] == {"on": "a load of 50 events/s", "pressed": ["50"], "violations": [], "problems": []}
    eventually(lambda: "players: starts again, with 50 events/s" in platform.lines("players"), SECONDS)
    assert found["lineage"] > 0
    documents = found["documents"]
    assert documents["diagrams"] > 0
    assert documents["not_drawn"] == 0
    assert documents["results"] > 0


def test_the_portal_has_the_health_and_figures_of_the_programs(platform: Dev) -> None:
    names = ("kafka", "registry", "gateway", "ingest", "gold", "live_ops")

    def is_complete() -> bool:
        page = platform.get("/")
        services = {row["service"]: row["state"] for row in rows_of(page, "Services and whether they respond")}
        streams = {row["stream"]: row for row in rows_of(page, "Streams with rate, lag and freshness")}
        healthy = all(services.get(name) == "responds" for name in names)
        ingest = streams.get("ingest_events", {"state": "is not shown"})
        return healthy and ingest["state"] == "runs" and ingest["records/s"][:1].isdigit()

    eventually(is_complete, SECONDS)


def test_a_first_event_by_curl_is_accepted_as_the_page_of_the_gateway_has_it(
    reader: Reader, missing_service: Callable[[str], NoReturn]
) -> None:
    for program in ("curl", "openssl"):
        if shutil.which(program) is None:
            missing_service(f"{program} is missing")
    here, _, request = [each.text for each in snippets("docs/gateway.md") if each.language == "sh"][:3]

    assert '{"accepted":1,"rejected":[]}' in reader.run(f"{here}{request}")


@pytest.mark.slow
def test_maintenance_compacts_the_tables(platform: Dev) -> None:
    settings = {
        "GAMELAKE_LAKEHOUSE": DevPaths(platform.directory).lakehouse.uri,
        "GAMELAKE_GAMES_FILE": str(CONTRACTS / "games.yaml"),
        **settings_of_maintenance(),
    }
    command = (sys.executable, "-m", "jobs.maintenance", "--once", "compact")

    ran = subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert [each["outcome"] for each in json.loads(ran.stdout)] == ["ok"]
    assert platform.starts("maintenance") >= 1


@pytest.mark.slow
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
    assert re.fullmatch(
        r"gamelake: another program listens on port \d+ of this machine: .+ make dev FIRST_PORT=\d+\n", other.stderr
    )
    assert directory.is_dir()


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=() if page == SHORT_PAGE else pytest.mark.slow) for page in HOW_TO]
)
def test_a_how_to_page_works_as_it_stands_there(page: str, reader: Reader) -> None:
    commands = [each for each in snippets(page) if not each.files and not each.text.startswith("cp ")]

    assert any(each.is_query for each in commands)
    reader.follow(commands)


# It has our programs start again, for a minute and more; the how-to page of gold tables shows most of it.
@pytest.mark.slow
def test_the_tutorial_works_as_it_stands_there_while_make_dev_runs(reader: Reader) -> None:
    start, *steps = snippets("docs/tutorial.md")

    assert start.text == "make dev RATE=20 GAMES=3\n"
    reader.follow(steps)
    assert any(line.startswith("serving: starts again, as games.yaml") for line in reader.platform.lines("serving"))


# It has our programs start again twice.
@pytest.mark.slow
def test_a_mistake_in_a_contract_stops_nothing_and_an_event_of_a_new_field_waits_until_the_gateway_knows_it(
    reader: Reader,
) -> None:
    platform, games = reader.platform, reader.repository / "contracts" / "games.yaml"
    right, jobs = games.read_text(), ("services.gateway", "jobs.ingest_events", "jobs.serving")
    pids = list(map(platform.pid_of, jobs))

    games.write_text(right.replace("match:", "mach:", 1))
    eventually(lambda: "unknown key 'mach'; it must be " in platform.printed, SECONDS)
    assert list(map(platform.pid_of, jobs)) == pids
    games.write_text(right)
    eventually(lambda: "Ready with games.yaml" in platform.printed, START_SECONDS)

    reader.run(
        """
        for kind in proto submitted; do
          cp -r contracts/$kind/v4 contracts/$kind/v5
          sed -i 's/^message GameEvent {$/&\\n  string mood = 15;/' contracts/$kind/v5/game_event.proto
        done
        """
    )
    event = '{"event_name": "session_start", "gamer_id": "ada", "mood": "happy"}'
    sent = reader.run(f".venv/bin/python -m tools.dev.send archery_duel '{event}'", START_SECONDS)

    assert sent == "accepted: 1\n"
