"""The snippets of documents, for tests that run them as they stand in the page."""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
_SECONDS = 120


def snippets(page: str, language: str, title: str = "") -> list[str]:
    """The code blocks of a document in one language, in their order.

    Args:
        page: its path in the repository.
        language: of the blocks.
        title: the file that the blocks are added to, as their title says; empty for blocks without a title.
    """
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    info = f'{language} title="{title}"' if title else language
    return re.findall(rf"^```{re.escape(info)}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def add_entries(file: Path, snippet: str) -> None:
    """Add entries to a file of YAML, as a reader does: first under a key that it has, or with the key at its end."""
    text = file.read_text(encoding="utf-8")
    for key, entries in re.findall(r"^(\w+:)\n((?:[ #\n].*\n?)+)", snippet, re.MULTILINE):
        text = text.replace(f"\n{key}\n", f"\n{key}\n{entries}") if f"\n{key}\n" in text else f"{text}{key}\n{entries}"
    file.write_text(text, encoding="utf-8")


def run_shell(commands: str, changed: Mapping[str, str], directory: Path = REPOSITORY, **environment: str) -> str:
    """Run the commands of a page, and give what they print.

    Args:
        commands: of one block.
        changed: what a test has in the place of addresses, folders and programs of the page; each must be on it.
        directory: to run them in.
        environment: of the commands, in addition.
    """
    for old, new in changed.items():
        assert old in commands, f"the page does not have {old}"
        commands = commands.replace(old, new)
    # As a shell is used: with an error, the next command is not run.
    run = subprocess.run(
        ("/bin/bash", "-euo", "pipefail", "-c", commands),
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert run.returncode == 0, f"{commands}\n{run.stdout}{run.stderr}"
    return run.stdout


def query_of(command: str) -> str:
    """The statement of a `make sql` command."""
    [query] = [word.removeprefix("Q=") for word in shlex.split(command) if word.startswith("Q=")]
    return query
