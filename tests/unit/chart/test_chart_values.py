"""The chart's values are typed, and name only what the code knows; no Helm is needed to see it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from gamelake.contract.schedule import parse_cadence
from tests.unit.chart.rendering import CHART, EXAMPLES, REPOSITORY, TEMPLATES

SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
DEFAULTS = (CHART / "values.yaml").read_text(encoding="utf-8")
TEMPLATE_TEXT = "\n".join(path.read_text(encoding="utf-8") for path in TEMPLATES)
CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("gamelake", "services")
    for path in (REPOSITORY / folder).rglob("*.py")
)
SETTINGS_PAGE = (REPOSITORY / "docs/settings.md").read_text(encoding="utf-8")
_SETTING = re.compile(r"\b(?:GAMELAKE|INGEST|PORTAL|PROVISION)_[A-Z0-9_]+")


def _errors(values: dict[str, Any]) -> list[str]:
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in Draft7Validator(SCHEMA).iter_errors(values)
    ]


def _objects(schema: Any) -> list[dict[str, Any]]:  # noqa: ANN401 # JSON
    if isinstance(schema, list):
        return [found for each in schema for found in _objects(each)]
    if not isinstance(schema, dict):
        return []
    inner = [found for each in schema.values() for found in _objects(each)]
    return [schema, *inner] if "properties" in schema and schema.get("type") == "object" else inner


def test_the_schema_is_one_and_refuses_unknown_names_at_every_level() -> None:
    Draft7Validator.check_schema(SCHEMA)

    assert all(each["additionalProperties"] is False for each in _objects(SCHEMA))


def test_the_defaults_are_allowed_and_name_every_value() -> None:
    defaults = yaml.safe_load(DEFAULTS)

    assert _errors(defaults) == []
    assert set(SCHEMA["properties"]) - {"global"} == set(defaults)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_allowed(example: Path) -> None:
    assert _errors(yaml.safe_load(example.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"gateway": {"replica": 3}}, "gateway: Additional properties are not allowed ('replica' was unexpected)"),
        ({"lakehouse": "gs://bucket"}, "lakehouse: 'gs://bucket' does not match"),
        ({"kafka": {"saslMechanism": "GSSAPI"}}, "kafka/saslMechanism: 'GSSAPI' is not one of"),
        ({"kafka": {"bootstrapServers": "kafka"}}, "kafka/bootstrapServers: 'kafka' does not match"),
        ({"vault": {"url": "postgresql://user:password@host/vault"}}, "vault/url: "),
        ({"drivers": {"gold": {"executors": {"cores": 0}}}}, "drivers/gold/executors/cores: 0 is less than"),
        (
            {"drivers": {"gold": {"settings": {"GAMELAKE_TRIGGER_SECOND": 1}}}},
            "drivers/gold/settings: Additional properties are not allowed ('GAMELAKE_TRIGGER_SECOND' was unexpected)",
        ),
        (
            {"drivers": {"live-ops": {"settings": {"GAMELAKE_FLOOD_SHARE": 2}}}},
            "drivers/live-ops/settings/GAMELAKE_FLOOD_SHARE: 2 is greater than",
        ),
        ({"catalog": {"resources": {"requests": {}}}}, "catalog/resources: 'limits' is a required property"),
    ],
)
def test_a_bad_value_is_refused_by_its_name(values: dict[str, Any], problem: str) -> None:
    [error] = _errors(values)

    assert error.startswith(problem)


def test_every_setting_that_a_template_names_is_read_by_the_code() -> None:
    named = set(_SETTING.findall(TEMPLATE_TEXT))

    assert named
    assert {name for name in named if f'"{name}"' not in CODE} == set()


def test_the_settings_that_values_may_have_are_those_of_the_page_with_its_bounds() -> None:
    settings = SCHEMA["$defs"]["settings"]["properties"]
    rows = re.findall(r"^\| `(\w+)` \| .* \| .*\(([\d.]+?)\.\.([\d.]+)\) \|$", SETTINGS_PAGE, re.MULTILINE)
    bounds = {name: (float(least), float(most)) for name, least, most in rows}
    # An agent's client starts its server, not the cluster.
    beyond = ("PROVISION_", "ALERT_", "GAMELAKE_AGENTS_")
    of_others = {name for name in bounds if name.startswith(beyond) or name.endswith("_PORT")}

    numbers = {name: (each["minimum"], each["maximum"]) for name, each in settings.items() if "minimum" in each}
    assert numbers == {name: both for name, both in bounds.items() if name not in of_others}
    assert {name for name in settings if f"`{name}`" not in SETTINGS_PAGE} == set()


def test_the_settings_of_the_defaults_and_examples_are_no_second_name_of_a_value() -> None:
    """A setting that the chart derives from a value may not be set as well."""
    settings = set(SCHEMA["$defs"]["settings"]["properties"])
    derived = set(_SETTING.findall(TEMPLATE_TEXT))

    assert settings & derived == set()


def test_the_version_of_the_application_is_the_tag_of_the_images() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    tag = re.search(r"^GAMELAKE_TAG=(.+)$", (REPOSITORY / "compose/.env").read_text(encoding="utf-8"), re.MULTILINE)

    assert tag is not None
    assert chart["appVersion"] == tag[1]


def test_every_time_of_the_schedule_is_one_that_a_cron_job_can_have() -> None:
    tasks = yaml.safe_load((REPOSITORY / "contracts/schedule.yaml").read_text(encoding="utf-8"))["tasks"]

    for task in tasks:
        seconds = int(parse_cadence(task["when"]).period.total_seconds())
        assert 3600 % seconds == 0 or 86400 % seconds == 0 or seconds == 7 * 86400
