"""promtool checks the configuration, the rules, their tests, and the queries of panels and runbooks."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from monitoring.grafana.files import GENERATED
from tests.unit.monitoring.rules import MONITORING, RULE_FILES, RULE_TESTS
from tests.unit.monitoring.test_runbooks import RUNBOOKS, commands


@pytest.fixture
def promtool(missing_service: Callable[[str], NoReturn]) -> str:
    return shutil.which("promtool") or missing_service("promtool is not installed: it comes with Prometheus")


def run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def check_queries(asked: list[str], promtool: str, tmp_path: Path) -> None:
    """Have promtool parse queries, as rules of a file."""
    rules = [
        {"record": f"asked:{number}", "expr": text.replace("$__rate_interval", "1m").replace("$__range", "1h")}
        for number, text in enumerate(asked)
    ]
    as_rules = tmp_path / "asked.yml"
    as_rules.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": rules}]}), encoding="utf-8")

    run(promtool, "check", "rules", as_rules)


@pytest.mark.parametrize("file", RULE_TESTS, ids=lambda file: file.name)
def test_the_rules_do_what_their_tests_say(file: Path, promtool: str) -> None:
    run(promtool, "test", "rules", file)


def test_prometheus_takes_its_configuration_and_every_rule(promtool: str, tmp_path: Path) -> None:
    shutil.copytree(MONITORING / "prometheus/rules", tmp_path / "rules")
    # promtool checks whether the files of certificates exist.
    text = (MONITORING / "prometheus/prometheus.yml").read_text(encoding="utf-8")
    for secret in re.findall(r"/run/secrets/([a-z-]+)", text):
        (tmp_path / secret).touch()
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text(text.replace("/run/secrets", str(tmp_path)), encoding="utf-8")

    run(promtool, "check", "config", configuration)
    run(promtool, "check", "rules", "--lint=all", "--lint-fatal", *RULE_FILES)


@pytest.mark.parametrize("file", sorted(GENERATED.glob("*.json")), ids=lambda file: file.stem)
def test_every_query_of_a_panel_can_be_parsed(file: Path, promtool: str, tmp_path: Path) -> None:
    panels = json.loads(file.read_text(encoding="utf-8"))["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    check_queries(asked, promtool, tmp_path)


def test_every_query_of_a_runbook_can_be_parsed(promtool: str, tmp_path: Path) -> None:
    asked = [words[1] for path in RUNBOOKS for words in commands(path) if words[0] == "compose/promql.sh"]

    assert asked
    check_queries(asked, promtool, tmp_path)
