"""The how-to pages work as they stand there: their entries in the contract, their commands, and what these print."""

import shutil
import subprocess
import sys

import pytest

from tests.embedded.lakehouse import Lakehouse
from tests.pages import REPOSITORY, add_entries, query_of, run_shell, snippets


@pytest.fixture(autouse=True)
def _contract(lakehouse: Lakehouse) -> None:
    """A copy of the repository's contract, to which a page adds entries."""
    shutil.copytree(REPOSITORY / "contracts", lakehouse.directory, dirs_exist_ok=True)


def printed_by(lakehouse: Lakehouse, command: str) -> str:
    """What a page's `make sql` prints of the test's lakehouse."""
    run = subprocess.run(
        (sys.executable, "-m", "jobs.ask", query_of(command)),
        cwd=REPOSITORY,
        env=lakehouse.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_message_of_another_company_becomes_rows(lakehouse: Lakehouse) -> None:
    page = "docs/how-to/own-protobuf.md"
    send, query = snippets(page, "sh")
    [shown] = snippets(page, "text")
    [entries] = snippets(page, "yaml", "contracts/games.yaml")
    add_entries(lakehouse.games_file, entries)

    run_shell(
        send,
        {
            "build/own-protobuf": str(lakehouse.directory / "generated"),
            ".venv/bin/python": sys.executable,
            "127.0.0.1:17004": lakehouse.bootstrap_servers,
            "http://127.0.0.1:17002/apis/ccompat/v7": lakehouse.registry_url,
            "--topic events": f"--topic {lakehouse.topic}",
        },
    )
    lakehouse.ingest()

    assert printed_by(lakehouse, query) == shown
    assert not lakehouse.reasons()
    assert lakehouse.reconciliation().problems == []
