"""Test modules have names of their own, as pytest imports them from several folders; packages stay small."""

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
_MOST_MODULES = 15


def test_no_two_test_modules_have_the_same_name() -> None:
    times = Counter(path.name for path in TESTS.rglob("test_*.py"))

    assert [name for name, count in times.items() if count > 1] == []


def test_a_package_of_the_library_has_few_modules() -> None:
    packages = Counter(path.parent for path in (TESTS.parent / "gamelake").rglob("*.py") if path.name != "__init__.py")

    assert {str(package): count for package, count in packages.items() if count > _MOST_MODULES} == {}
