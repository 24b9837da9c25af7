"""The script that evaluates a PromQL query in the running stack."""

from pathlib import Path

import pytest

from tests.support.programs import Outcome, add_program, run_alone
from tests.unit.compose.configured import copy_scripts

# Prints each argument of compose on its own line; has no other images.
FAKE_DOCKER = """#!/bin/bash
[ "$1" = compose ] && printf '%s\\n' "$@"
"""
QUERY = 'sum by (game) (rate(gamelake_ingest_events_accepted_total{game="archery"}[5m])) > 0'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The scripts, and a fake Docker."""
    add_program(tmp_path / "bin" / "docker", FAKE_DOCKER)
    copy_scripts(tmp_path, "promql.sh", "stack.sh", "read_env.sh", ".env")
    return tmp_path


def query(checkout: Path, *arguments: str) -> Outcome:
    return run_alone((checkout / "compose/promql.sh", *arguments), checkout / "bin")


def test_promtool_gets_the_query_unchanged_in_the_container_of_prometheus(checkout: Path) -> None:
    outcome = query(checkout, QUERY)

    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.splitlines()[-9:] == [
        *("exec", "-T", "prometheus", "promtool", "query", "instant"),
        *("--http.config.file=/etc/prometheus/promtool.yml", "https://localhost:9090", QUERY),
    ]


@pytest.mark.parametrize("arguments", [(), ("sum(up)", "by")])
def test_a_query_that_is_missing_or_unquoted_is_an_error_with_an_example(
    checkout: Path, arguments: tuple[str, ...]
) -> None:
    outcome = query(checkout, *arguments)

    assert outcome.returncode == 2
    assert outcome.stdout == ""
    assert "promql.sh 'topk(5, gamelake_table_bytes)'" in outcome.stderr
