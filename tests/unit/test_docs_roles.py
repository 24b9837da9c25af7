"""The README and the pages by role are short, and their commands exist."""

import re
import shlex
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
ROLES = sorted((REPOSITORY / "docs/roles").glob("*.md"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
# The page's rows are compared with the command line by its own test.
COMMANDS = set(re.findall(r"^\| `gamelake (\w+)", (REPOSITORY / "docs/command-line.md").read_text(), re.MULTILINE))
_MOST_WORDS, _MOST_LINES = 250, 99
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


def named(program: str, page: Path) -> set[str]:
    """Return the first arguments that a page's blocks and inline code give to a program."""
    text = page.read_text(encoding="utf-8")
    lines = [line for language, block in _FENCE.findall(text) if language == "sh" for line in block.splitlines()]
    lines += _CODE.findall(_FENCE.sub("", text))
    calls = [shlex.split(part, comments=True) for line in lines for part in line.split(" && ")]
    return {call[1] for call in calls if call[:1] == [program] and len(call) > 1}


def test_the_readme_is_short_and_links_each_role() -> None:
    text = README.read_text(encoding="utf-8")

    assert len(text.splitlines()) <= _MOST_LINES
    assert [page.name for page in ROLES if f"(docs/roles/{page.name})" not in text] == []


@pytest.mark.parametrize("page", ROLES, ids=lambda page: page.stem)
def test_a_page_by_role_is_short_and_begins_with_commands(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert len(text.split()) <= _MOST_WORDS
    assert 0 < text.find("```sh") < text.find("\n| ")


@pytest.mark.parametrize("page", [README, *ROLES], ids=lambda page: page.stem)
def test_every_target_and_command_that_a_page_names_exists(page: Path) -> None:
    assert named("make", page) <= TARGETS
    assert named("gamelake", page) <= COMMANDS
    assert named("make", page) | named("gamelake", page)
