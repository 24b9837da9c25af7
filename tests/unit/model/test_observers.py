"""An observer that fails stops neither the others nor the process that it observes."""

from collections.abc import Sequence

import pytest

from gamelake.model.observers import all_of
from tests.support.logged import logged


class Counting:
    """Counts what it is notified of."""

    def __init__(self) -> None:
        self.count = 0

    def noted(self, by: int, *, times: int = 1) -> None:
        self.count += by * times


class Failing(Counting):
    """Fails at each call."""

    def noted(self, by: int, *, times: int = 1) -> None:
        raise ZeroDivisionError(by * times)


def test_each_observer_is_called_with_all_arguments() -> None:
    first, second = Counting(), Counting()

    all_of([first, second]).noted(2, times=3)

    assert (first.count, second.count) == (6, 6)


def test_an_error_of_an_observer_stops_no_other_one_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    first, second = Counting(), Counting()

    observer = all_of([first, Failing(), second])
    for _ in range(2):
        observer.noted(2, times=3)

    assert (first.count, second.count) == (12, 12)
    (failed,) = logged(caplog, "telemetry_failed")
    assert failed["function"] == "noted"


def test_no_observers_need_no_case_of_their_own() -> None:
    none: Sequence[Counting] = ()

    all_of(none).noted(2)


def test_a_method_that_observers_lack_is_an_error_of_the_caller() -> None:
    with pytest.raises(AttributeError):
        all_of([Counting()]).forgotten()  # type: ignore[attr-defined] # as it says
