"""Every test module has a name of its own: pytest imports them by it, and several folders are collected at once."""

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_no_two_test_modules_have_the_same_name() -> None:
    times = Counter(path.name for path in TESTS.rglob("test_*.py"))

    assert [name for name, count in times.items() if count > 1] == []
