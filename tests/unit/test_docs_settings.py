"""The pages on settings and dead letters say what the code does, no more and no less."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from gamelake.maintenance.settings import MaintenanceSettings
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import SettingsError
from gamelake.model.logs import LogFormat
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.streaming.driver.settings import IngestSettings
from tests.unit.test_settings import REQUIRED

_CODE = "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path("gamelake").rglob("*.py")))
_PAGE = Path("docs/settings.md").read_text(encoding="utf-8")
_LETTERS = Path("docs/dead-letters.md").read_text(encoding="utf-8")


def _rows(page: str) -> list[list[str]]:
    """The rows of a page's tables that begin with something in code."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0].startswith("`")]


def _section(title: str) -> list[list[str]]:
    return _rows(_PAGE.split(f"## {title}\n")[1].split("\n## ")[0])


@dataclass(frozen=True)
class Number:
    """A setting that is a number, as the page has it."""

    name: str
    unit: str
    default: str
    least: str
    most: str


_NUMBERS = [
    Number(name.strip("`"), unit, default, least, most) for name, _, unit, default, least, most in _section("Numbers")
]


def _settings(**changes: str) -> IngestSettings:
    return IngestSettings.from_env(REQUIRED | changes)


def _maintenance_settings(**changes: str) -> MaintenanceSettings:
    names = ("GAMELAKE_LAKEHOUSE", "GAMELAKE_GAMES_FILE")
    required = {name: REQUIRED[name] for name in names} | {"GAMELAKE_SCHEDULE_FILE": "schedule.yaml"}
    return MaintenanceSettings.from_env(required | changes)


def _live_ops_settings(**changes: str) -> LiveOpsSettings:
    return LiveOpsSettings.from_env(REQUIRED | changes)


def test_the_settings_of_live_operations_are_the_pages() -> None:
    for name, _, unit, default, least, most in _section("Live operations"):
        variable = name.strip("`")
        assert _live_ops_settings(**{variable: default.strip("`")}) == _live_ops_settings()
        assert unit in ("", "seconds", "tasks")
        if unit:
            for allowed in (least, most):
                _live_ops_settings(**{variable: allowed})
            for beyond in (int(least) - 1, int(most) + 1):
                with pytest.raises(SettingsError, match=variable):
                    _live_ops_settings(**{variable: str(beyond)})


def test_the_stream_of_live_operations_has_a_name_of_its_own() -> None:
    assert _live_ops_settings().reading.stream == "live_ops"
    assert _live_ops_settings(GAMELAKE_STREAM="other").reading.stream == "other"


def test_every_variable_that_the_code_reads_has_its_row_and_the_reverse() -> None:
    documented = [row[0].strip("`") for row in _rows(_PAGE.split("## Services\n")[0])]

    assert len(documented) == len(set(documented))
    ours = {name for name in documented if name.startswith("GAMELAKE_")}
    assert ours == set(re.findall(r'"(GAMELAKE_[A-Z0-9_]+)"', _CODE))
    assert set(documented) - ours == set(re.findall(r'(?:^    |optional\()"(AWS_[A-Z_]+)"[:,]', _CODE, re.MULTILINE))


def test_the_page_lists_what_is_required() -> None:
    assert [row[0].strip("`") for row in _section("Required")] == list(REQUIRED)


@pytest.mark.parametrize("number", _NUMBERS, ids=lambda number: number.name)
def test_a_numbers_default_and_bounds_are_the_pages(number: Number) -> None:
    assert _settings(**{number.name: number.default}) == _settings()
    for allowed in (number.least, number.most):
        _settings(**{number.name: allowed})
    for beyond in (int(number.least) - 1, int(number.most) + 1):
        with pytest.raises(SettingsError, match=number.name):
            _settings(**{number.name: str(beyond)})


@pytest.mark.parametrize("row", [row for row in _section("Maintenance") if row[2]], ids=lambda row: row[0])
def test_a_default_and_bounds_of_maintenance_are_the_pages(row: list[str]) -> None:
    name, _, _, default, least, most = row
    name = name.strip("`")

    assert _maintenance_settings(**{name: default}) == _maintenance_settings()
    for allowed in (least, most):
        _maintenance_settings(**{name: allowed})
    for beyond in (int(least) - 1, int(most) + 1):
        with pytest.raises(SettingsError, match=name):
            _maintenance_settings(**{name: str(beyond)})


def test_a_numbers_name_says_its_unit_or_what_it_counts() -> None:
    for number in _NUMBERS:
        assert number.unit in ("seconds", "records", "events", "share", "messages", "columns", "bytes", "MiB")
        for unit in ("seconds", "columns", "bytes", "MiB"):
            assert number.name.endswith(f"_{unit.upper()}") == (number.unit == unit)


def test_other_defaults_are_the_pages() -> None:
    defaults = {name.strip("`"): default.strip("`") for name, _, default in _section("Others")}

    given = {name: default for name, default in defaults.items() if default}
    assert given == {
        "GAMELAKE_LOG_FORMAT": LogFormat.TEXT,
        "GAMELAKE_KAFKA_SASL_MECHANISM": _settings().kafka.mechanism,
        "GAMELAKE_STREAM": _settings().stream,
        "GAMELAKE_METRICS_HOST": _settings().telemetry.metrics_host,
    }
    assert _settings(**defaults) == _settings()


def test_every_reason_for_a_dead_letter_is_explained_and_the_reverse() -> None:
    rows = _rows(_LETTERS)

    assert [row[0].strip("`") for row in rows] == [reason.value for reason in DeadLetterReason]
    assert all(cell for row in rows for cell in row)
    assert {re.split(r"[:, ]", row[3])[0] for row in rows} == {"yes", "no", "only"}
