"""The model of the protocol holds within small bounds, and each mechanism that is left out of it breaks a property."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tools.embedded.process import ServiceMissingError
from tools.model import MODEL, CheckedModel, check

_SECONDS = 300  # a busy machine; an idle one takes two to ten

Check = Callable[..., CheckedModel]


@pytest.fixture(name="checked", scope="session")
def _checked(missing_service: Callable[[str], NoReturn]) -> Check:
    """Checks the model; a missing TLC skips the test locally and fails it in CI."""

    def checked(bounds: str, *without: str) -> CheckedModel:
        try:
            return check(bounds, without, _SECONDS)
        except ServiceMissingError as error:
            missing_service(str(error))

    return checked


@pytest.mark.parametrize(
    "bounds", ["sources", "sources-end", "drivers-end", pytest.param("leases", marks=pytest.mark.slow), "old-number"]
)
def test_the_model_of_the_protocol_holds_within_small_bounds(checked: Check, bounds: str) -> None:
    done = checked(bounds)

    assert done.violated == "", done.trace
    assert done.states > 100


@pytest.mark.parametrize(
    ("bounds", "mechanism", "violated"),
    [
        ("sources", "settle records", "EachEventIsDecidedOnce"),
        ("sources", "transaction check", "EachRowOnce"),
        ("drivers", "one listing", "EachRecordIsDecidedOnce"),
        ("drivers-large", "finish again", "NothingIsLost"),
        ("two-events", "withdrawal", "EachEventIsDecidedOnce"),
        ("old-number", "second listing", "EachEventIsDecidedOnce"),
        pytest.param("leases", "withdrawal", "EachTokenHasOneHolder", marks=pytest.mark.slow),
        ("leases", "fence", "OnlyTheNewestHolderHasAnEffect"),
        ("leases", "token check", "OnlyTheNewestHolderHasAnEffect"),
    ],
)
def test_the_model_does_not_hold_without_a_mechanism(
    checked: Check, bounds: str, mechanism: str, violated: str
) -> None:
    assert checked(bounds, mechanism).violated == violated


def test_each_mechanism_that_can_be_left_out_is_in_the_table_of_the_model() -> None:
    modules = "".join(path.read_text(encoding="utf-8") for path in MODEL.glob("*.tla"))
    readme = (MODEL / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## Without one mechanism")[2].partition("## ")[0]

    assert set(re.findall(r'Has\("([\w ]+)"\)', modules)) == set(re.findall(r"^\| `([\w ]+)` \|", table, re.MULTILINE))


def test_each_action_of_the_model_has_its_function_in_the_code() -> None:
    root = MODEL.parents[1]
    modules = [path.read_text(encoding="utf-8") for path in MODEL.glob("*.tla")]
    rows = [
        row for text in modules for row in re.findall(r"^   (\w+(?:, \w+)*): (.+) in ([\w/]+\.py)$", text, re.MULTILINE)
    ]
    named = {action for actions, _, _ in rows for action in actions.split(", ")}
    steps = [re.search(r"^Step\((\w)\) ==\n((?:  .*\n)+)", text, re.MULTILINE) for text in modules]
    actions = {action for step in steps if step is not None for action in re.findall(r"(\w+)\(\w\)", step[2])}

    assert actions == named
    for _, functions, module in rows:
        code = Path(root / module).read_text(encoding="utf-8")
        for name in functions.split(", "):
            assert re.search(rf"(?:def|class) {name.rsplit('.', maxsplit=1)[-1]}\b", code), f"{module}: {name}"
