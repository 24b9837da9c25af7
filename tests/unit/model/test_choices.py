"""A misspelt name is an error with the names that there are, and the nearest of them."""

from enum import StrEnum

import pytest

from gamelake.model.choices import allowed, chosen
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError


class Severity(StrEnum):
    """A choice."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


def test_a_known_name_is_the_member_that_it_names() -> None:
    assert chosen(Severity, "fail") is Severity.FAIL


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("quarantene", "it must be fail or quarantine; did you mean quarantine?"),
        ("FAIL", "it must be fail or quarantine; did you mean fail?"),
        ("x" * 5_000_000, "it must be fail or quarantine"),
        ("", "it must be fail or quarantine"),
    ],
)
def test_another_name_is_an_error_with_the_allowed_ones_and_the_nearest(given: str, problem: str) -> None:
    with pytest.raises(ValueError, match="it must be") as refused:
        chosen(Severity, given)

    assert str(refused.value) == problem


def test_a_choice_of_one_or_of_three_reads_well() -> None:
    assert (allowed(["a"]), allowed(["a", "b", "c"])) == ("a", "a, b or c")


def test_a_setting_that_is_a_choice_names_the_variable() -> None:
    with pytest.raises(SettingsError, match=r"^X is 'fial'; it must be fail or quarantine; did you mean fail\?$"):
        Environment({"X": "fial"}).choice("X", Severity, Severity.FAIL)
    assert Environment({}).choice("X", Severity, Severity.QUARANTINE) is Severity.QUARANTINE
