"""Workflows run pinned code with the permissions that they need, and a bot updates each kind of dependency."""

import json
import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.supply_chain.python_packages import locked

REPOSITORY = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((REPOSITORY / ".github/workflows").glob("*.yml"))
RENOVATE = json.loads((REPOSITORY / ".github/renovate.json").read_text())
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
# Text that the author of a pull request chooses: in a script it would be run.
CHOSEN_BY_OTHERS = re.compile(r"\$\{\{[^}]*(?:github\.event\.|github\.head_ref|inputs\.)")

workflows = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["jobs"]
    return read


@workflows
def test_each_action_is_pinned_by_its_commit_with_the_version_next_to_it(path: Path) -> None:
    used = [line.strip().removeprefix("- ") for line in path.read_text().splitlines() if "uses:" in line]

    assert used
    assert [line for line in used if not PINNED.match(line)] == []


@workflows
def test_a_workflow_has_no_permissions_and_each_job_only_its_own(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {}
    assert [name for name, job in jobs(path).items() if not isinstance(job.get("permissions"), dict)] == []


@workflows
def test_a_job_that_may_write_leaves_no_credentials_in_its_checkout(path: Path) -> None:
    left = [
        name
        for name, job in jobs(path).items()
        if "write" in job["permissions"].values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@") and step["with"]["persist-credentials"] is not False
    ]

    assert left == []


@workflows
def test_no_script_contains_text_that_others_choose(path: Path) -> None:
    scripts = [step.get("run", "") for job in jobs(path).values() for step in job["steps"]]

    assert [script for script in scripts if CHOSEN_BY_OTHERS.search(script)] == []


@workflows
def test_each_job_ends_after_a_time(path: Path) -> None:
    assert [name for name, job in jobs(path).items() if "timeout-minutes" not in job and name != "gate"] == []


def test_the_gate_waits_for_all_other_jobs() -> None:
    found = jobs(REPOSITORY / ".github/workflows/ci.yml")

    assert sorted(found["gate"]["needs"]) == sorted(set(found) - {"gate"})


@pytest.mark.parametrize(
    ("manager", "pattern"),
    [
        ("pep621", "pyproject.toml"),
        ("maven", "compose/*/pom.xml"),
        ("cargo", "native/Cargo.lock"),
        ("dockerfile", "compose/*/Dockerfile"),
        ("github-actions", ".github/workflows/*.yml"),
        ("custom.regex", "compose/.env"),
    ],
)
def test_the_bot_updates_each_kind_of_dependency(manager: str, pattern: str) -> None:
    assert list(REPOSITORY.glob(pattern))
    assert manager in RENOVATE["enabledManagers"]


def test_the_bots_patterns_find_the_versions_of_the_stacks_settings() -> None:
    settings = (REPOSITORY / "compose/.env").read_text()
    patterns = [
        re.compile(text.replace("(?<", "(?P<"))
        for manager in RENOVATE["customManagers"]
        for text in manager["matchStrings"]
    ]

    found = {match[0].partition("=")[0] for pattern in patterns for match in pattern.finditer(settings)}

    # Its authors publish no newer one.
    assert found == set(re.findall(r"^(\w+_(?:IMAGE|VERSION))=", settings, re.MULTILINE)) - {"MINIO_VERSION"}


def test_the_lock_has_each_dependency_in_a_version_that_the_project_allows() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = [Requirement(text) for text in chain.from_iterable(groups)]
    pinned = [(canonicalize_name(one.name), one.version or "") for one in locked(REPOSITORY / "requirements.lock", {})]

    missing = [
        str(one)
        for one in wanted
        if not any(name == canonicalize_name(one.name) and one.specifier.contains(version) for name, version in pinned)
    ]

    assert missing == [], "run make lock"
