"""The pages on settings and dead letters say what the code does, no more and no less."""

import re
from collections.abc import Callable
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
# A default, and the range of a number: `600 (0..86400)`.
_DEFAULT = re.compile(r"(.*?)(?: \(([\d.]+?)\.\.([\d.]+)\))?")
_UNITS = (
    "SECONDS",
    "RECORDS",
    "EVENTS",
    "SHARE",
    "DEPTH",
    "COLUMNS",
    "BYTES",
    "MIB",
    "PER_TASK",
    "PER_TRIGGER",
    "ONE_IN",
)


def _rows(page: str) -> list[list[str]]:
    """The rows of a page's tables that begin with something in code."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0].startswith("`")]


def _section(title: str) -> list[list[str]]:
    return _rows(_PAGE.split(f"## {title}\n")[1].split("\n## ")[0])


@dataclass(frozen=True)
class Setting:
    """A setting, as the page has it; only a number has bounds."""

    name: str
    default: str
    least: str
    most: str


def _settings_of(title: str) -> list[Setting]:
    cells = [(row[0].strip("`"), _DEFAULT.fullmatch(row[2])) for row in _section(title)]
    return [Setting(name, found[1].strip("`"), found[2] or "", found[3] or "") for name, found in cells if found]


_NUMBERS = _settings_of("Numbers")


def _settings(**changes: str) -> IngestSettings:
    return IngestSettings.from_env(REQUIRED | changes)


def _maintenance_settings(**changes: str) -> MaintenanceSettings:
    names = ("GAMELAKE_LAKEHOUSE", "GAMELAKE_GAMES_FILE")
    required = {name: REQUIRED[name] for name in names} | {"GAMELAKE_SCHEDULE_FILE": "schedule.yaml"}
    return MaintenanceSettings.from_env(required | changes)


def _live_ops_settings(**changes: str) -> LiveOpsSettings:
    return LiveOpsSettings.from_env(REQUIRED | changes)


def test_the_settings_of_live_operations_are_the_pages() -> None:
    for setting in _settings_of("Live operations"):
        assert _live_ops_settings(**{setting.name: setting.default}) == _live_ops_settings()
        assert bool(setting.least) == setting.name.endswith(("_SECONDS", "_TASKS"))
        if setting.least:
            for allowed in (setting.least, setting.most):
                _live_ops_settings(**{setting.name: allowed})
            for beyond in (int(setting.least) - 1, int(setting.most) + 1):
                with pytest.raises(SettingsError, match=setting.name):
                    _live_ops_settings(**{setting.name: str(beyond)})


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


def _check_default_and_bounds(settings: Callable[..., object], number: Setting) -> None:
    assert settings(**{number.name: number.default}) == settings()
    for allowed in (number.least, number.most):
        settings(**{number.name: allowed})
    for beyond in (int(number.least) - 1, int(number.most) + 1):
        with pytest.raises(SettingsError, match=number.name):
            settings(**{number.name: str(beyond)})


@pytest.mark.parametrize("number", _NUMBERS, ids=lambda number: number.name)
def test_a_numbers_default_and_bounds_are_the_pages(number: Setting) -> None:
    _check_default_and_bounds(_settings, number)


@pytest.mark.parametrize(
    "number", [each for each in _settings_of("Maintenance") if each.least], ids=lambda each: each.name
)
def test_a_default_and_bounds_of_maintenance_are_the_pages(number: Setting) -> None:
    _check_default_and_bounds(_maintenance_settings, number)


def test_a_numbers_name_says_its_unit_or_what_it_counts() -> None:
    assert _NUMBERS
    assert [number.name for number in _NUMBERS if not number.name.endswith(_UNITS) or not number.least] == []


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
