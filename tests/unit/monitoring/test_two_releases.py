"""Each alert fires for the release that has the fault, whatever another release in the same Prometheus is like."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from tests.unit.monitoring.rules import RULE_TESTS, alerts, read_yaml
from tests.unit.monitoring.test_promtool import run

FAULTY, SOUND = "faulty", "sound"
_FIRST_VALUE = re.compile(r"(?<![\w.])-?\d[\d.e]*")
Test = dict[str, Any]


def with_namespace(series: str, namespace: str) -> str:
    """A series, as its name or with labels, with another label."""
    name, _, labels = series.partition("{")
    return f'{name}{{namespace="{namespace}", {labels or "}"}'


def as_at_the_beginning(values: str) -> str:
    """Values that stay what they were first."""
    first = _FIRST_VALUE.search(values)
    return f"{first[0] if first else 0}x1000"


def with_a_sound_release(test: Test) -> Test:
    """The test of a faulty release, next to another one in which nothing has happened yet."""
    return {
        "interval": test["interval"],
        "input_series": [
            each
            for series in test["input_series"]
            for each in (
                {"series": with_namespace(series["series"], FAULTY), "values": series["values"]},
                {"series": with_namespace(series["series"], SOUND), "values": as_at_the_beginning(series["values"])},
            )
        ],
        "promql_expr_test": [*_of_alerts(test), *_of_expressions(test)],
    }


def _of_alerts(test: Test) -> Iterator[Test]:
    for each in test.get("alert_rule_test", ()):
        name = each["alertname"]
        samples = [
            {
                "labels": _labels({"alertname": name, "namespace": FAULTY, "alertstate": "firing", **of["exp_labels"]}),
                "value": 1,
            }
            for of in each["exp_alerts"]
        ]
        if name != "Watchdog":
            expression = f'ALERTS{{alertname="{name}", alertstate="firing", namespace="{FAULTY}"}}'
            yield {"expr": expression, "eval_time": each["eval_time"], "exp_samples": samples}


def _of_expressions(test: Test) -> Iterator[Test]:
    for each in test.get("promql_expr_test", ()):
        if "ALERTS{" in each["expr"]:
            yield each | {"expr": each["expr"].replace("ALERTS{", f'ALERTS{{namespace="{FAULTY}", ')}


def _labels(labels: dict[str, str]) -> str:
    return "ALERTS{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def cases_in(file: Path) -> list[Test]:
    """The tests of a file, with values of series as text: to YAML 0x100 is a number."""
    as_text = yaml.load(file.read_text(encoding="utf-8"), yaml.BaseLoader)["tests"]  # noqa: S506 # which makes texts only
    return [
        test | {"input_series": text["input_series"] or []}
        for test, text in zip(read_yaml(file)["tests"], as_text, strict=True)
    ]


def with_two_releases(test: Test) -> Test:
    """The test itself, if it distinguishes releases, else with a sound one."""
    return test if "namespace=" in str(test) else with_a_sound_release(test)


@pytest.mark.slow
@pytest.mark.parametrize("file", RULE_TESTS, ids=lambda file: file.name)
def test_a_sound_release_hides_no_alert_of_another_one(
    file: Path, missing_service: Callable[[str], NoReturn], tmp_path: Path
) -> None:
    promtool = shutil.which("promtool") or missing_service("promtool is not installed: it comes with Prometheus")
    content = read_yaml(file)
    rules = [str((file.parent / each).resolve()) for each in content["rule_files"]]
    tests = [with_two_releases(each) for each in cases_in(file)]
    both = tmp_path / file.name
    both.write_text(yaml.safe_dump(content | {"rule_files": rules, "tests": tests}), encoding="utf-8")

    run(promtool, "test", "rules", both)


def test_each_alert_is_seen_with_two_releases() -> None:
    seen = {
        name
        for file in RULE_TESTS
        for each in cases_in(file)
        for expected in with_two_releases(each).get("promql_expr_test", ())
        for sample in expected["exp_samples"]
        for name in re.findall(r'alertname="(\w+)"', sample["labels"])
    }

    assert {alert.name for alert in alerts()} - {"Watchdog"} == seen - {"Watchdog"}
