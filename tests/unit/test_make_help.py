"""`make` alone says what can be made, and CI calls nothing else."""

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
MAKEFILE = (REPOSITORY / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.MULTILINE)
WORKFLOW = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text()
CI_SCRIPT = (REPOSITORY / ".ci" / "run").read_text()


FOR_CONTRIBUTORS = [
    "AGENTS.md", "CONTRIBUTING.md", ".devcontainer/devcontainer.json", ".devcontainer/Dockerfile",
    ".github/pull_request_template.md", ".github/ISSUE_TEMPLATE/bug.md",
]  # fmt: skip


@pytest.fixture(scope="module")
def help_text() -> str:
    """What `make` without a target prints."""
    return subprocess.run(("/usr/bin/make", "-C", str(REPOSITORY)), capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_a_line_in_the_help(target: str, help_text: str) -> None:
    assert re.search(rf"^  {target} +\S", help_text, re.MULTILINE)


def test_the_help_leads_with_six_targets_and_names_each_target_once(help_text: str) -> None:
    titles = re.findall(r"^[A-Z].*(?=\n  )", help_text, re.MULTILINE)
    start = help_text.partition("Start here\n")[2].partition("\n\n")[0]

    assert titles[0] == "Start here"
    assert re.findall(r"^  ([a-z]+)", start, re.MULTILINE) == ["demo", "dev", "doctor", "up", "sql", "test"]
    assert sorted(re.findall(r"^  ([a-z][a-z-]*) +\S", help_text, re.MULTILINE)) == sorted(set(TARGETS))


def test_every_target_is_made_even_when_a_file_has_its_name() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)

    assert phony is not None
    assert set(phony[1].split()) == set(TARGETS)


@pytest.mark.parametrize("text", [WORKFLOW, CI_SCRIPT], ids=["ci.yml", ".ci/run"])
def test_ci_calls_only_targets_that_exist(text: str) -> None:
    called = re.findall(r"(?:step|run:) make ([a-z-]+)", text)

    assert called
    assert set(called) <= set(TARGETS)


@pytest.mark.parametrize("name", FOR_CONTRIBUTORS)
def test_what_contributors_read_names_only_targets_and_files_that_exist(name: str) -> None:
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    targets = {target for line in re.findall(r"[`\"]make ([a-z -]+)[`\"]", text) for target in line.split()}
    files = re.findall(r"`((?:docs|tests|monitoring|contracts|quality|gamelake|jobs|services|tools)/[\w./-]*)`", text)

    assert targets
    assert targets <= set(TARGETS)
    assert [file for file in files if not (REPOSITORY / file).exists()] == []
