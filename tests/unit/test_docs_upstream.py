"""The defects of dependencies that docs/upstream describes still exist: once one is fixed, its workaround can go."""

import subprocess
import sys
from pathlib import Path

import pytest

UPSTREAM = Path(__file__).parents[2] / "docs" / "upstream"
SCRIPTS = sorted(UPSTREAM.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_a_reported_defect_is_still_reproduced(script: Path) -> None:
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)

    assert shown.returncode == 0, shown.stdout + shown.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_a_reported_defect_has_a_report_with_what_the_script_prints(script: Path) -> None:
    report = (UPSTREAM / f"{script.stem.replace('_', '-')}.md").read_text(encoding="utf-8")

    assert f"[{script.name}]({script.name})" in report
    assert subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False).stdout in report
