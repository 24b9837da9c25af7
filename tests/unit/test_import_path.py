"""What tests import is found from the project's root alone."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_folder_of_tests_is_on_the_import_path() -> None:
    # A module there, such as `platform.py`, would hide Python's own from the processes that tests start.
    assert [path for path in sys.path if Path(path).is_relative_to(TESTS)] == []
