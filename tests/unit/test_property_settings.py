"""Every property test takes its settings from one of two places, so that CI tries the same examples at every run."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SETTINGS = {TESTS / "unit" / "properties.py", TESTS / "embedded" / "effort.py"}
PROPERTY_TESTS = sorted(
    file
    for file in TESTS.rglob("*.py")
    if re.search(r"^from hypothesis", file.read_text(), re.M) and file not in SETTINGS
)


@pytest.mark.parametrize("file", PROPERTY_TESTS, ids=lambda file: file.name)
def test_a_property_test_has_the_shared_settings(file: Path) -> None:
    text = file.read_text()

    assert len(re.findall(r"@given\(", text)) <= len(re.findall(r"@(?:examples|fuzzing)\(", text))
    assert not re.search(r"settings\((?!examples\()\w+=", text)
