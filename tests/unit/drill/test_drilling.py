"""A drill times its steps, fails on loss or if it is too slow, and is documented in the operations manual."""

import io
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from gamelake.contract.games import load_games
from tests.support.failing import failing
from tools.drill import recoveries
from tools.drill.__main__ import main
from tools.drill.bad_deploy import swapped
from tools.drill.environment import DrillEnvironment, DrillError
from tools.drill.recoveries import DRILLS, Drill
from tools.drill.runner import DrillResult, run_drill
from tools.stack import Container, StackError

CONTRACT = Path("contracts/games.yaml")
MANUAL = Path("docs/operations.md").read_text()


class FakeGame:
    """A game whose events are acknowledged at once."""

    table = "silver/x_events"

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()

    def send(self, _stop: Event, _transport: object = None) -> set[str]:
        new = {f"e{len(self.acknowledged)}"}
        self.acknowledged |= new
        return new


class FakeEnvironment(DrillEnvironment):
    """A healthy stack that loses some events."""

    def __init__(self, losing: int = 0) -> None:
        super().__init__(SimpleNamespace(location=None), FakeGame(), FakeGame())  # type: ignore[arg-type]
        self.losing = losing

    def rows(self, table: str) -> Counter[str]:
        return Counter(sorted(self.game.acknowledged)[self.losing :])

    def wait_for_rows(self) -> None:
        pass

    def wait_until_healthy(self) -> None:
        self.game.send(Event())

    def problems(self) -> list[str]:
        return ["lost"] if self.losing else []


def a_drill(**changes: Any) -> Drill:  # noqa: ANN401 # whatever a drill is made of
    usual: dict[str, Any] = {
        "name": "x", "description": "nothing", "bound": timedelta(seconds=5), "strike": lambda _: None,
        "recover": lambda _: None, "keeps_playing": False,
    }  # fmt: skip
    return Drill(**(usual | changes))


def practised(drill: Drill, environment: DrillEnvironment) -> DrillResult:
    return run_drill(drill, environment, lambda _step: None)


def test_a_good_recovery_names_its_steps_and_their_times() -> None:
    result = practised(a_drill(), FakeEnvironment())

    assert result.is_successful
    assert list(result.steps) == ["fault", "recovery", "healthy again", "all rows present"]
    assert result.acknowledged == 6


def test_a_drill_is_cleaned_up_even_if_its_recovery_fails_and_that_is_not_part_of_its_time() -> None:
    cleaned: list[DrillEnvironment] = []
    environment = FakeEnvironment()

    good = practised(a_drill(clean_up=cleaned.append), environment)
    bad = practised(a_drill(recover=failing(StackError("compose said no")), clean_up=cleaned.append), environment)

    assert good.is_successful
    assert list(good.steps) == ["fault", "recovery", "healthy again", "clean-up", "all rows present"]
    assert bad.problems == ("StackError: compose said no",)
    assert cleaned == [environment, environment]


def test_a_drill_that_takes_too_long_fails() -> None:
    result = practised(a_drill(bound=timedelta(0), recover=lambda _: sum(range(10**6 * 4))), FakeEnvironment())

    assert result.problems == ()
    assert not result.is_successful


def test_a_drill_that_loses_events_fails() -> None:
    assert practised(a_drill(), FakeEnvironment(losing=1)).problems == ("lost",)


def test_a_drill_reports_the_command_that_failed() -> None:
    result = practised(a_drill(recover=failing(StackError("compose said no"))), FakeEnvironment())

    assert result.problems == ("StackError: compose said no",)
    assert "recovery" not in result.steps


def services(*states: tuple[str, str]) -> list[Container]:
    return [Container(id=name, service=name, state=state, health="", project="x") for name, state in states]


def test_random_kills_end_though_each_service_dies_of_an_earlier_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    victims: list[str] = []

    def crash(service: str) -> None:
        victims.append(service)
        raise StackError("it does not run")

    running = services(("kafka", "running"), ("trino", "exited"), ("prometheus", "running"))
    monkeypatch.setattr(recoveries, "containers", lambda: running)
    monkeypatch.setattr(recoveries, "crash", crash)
    monkeypatch.setattr(recoveries, "_LONGEST_PAUSE_SECONDS", 0)

    (drill,) = (each for each in DRILLS if each.name == "random-kills")
    drill.strike(FakeEnvironment())

    assert victims == ["kafka"] * 40


def test_random_kills_fail_if_no_service_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recoveries, "containers", lambda: services(("kafka", "exited")))
    monkeypatch.setattr(recoveries, "_LONGEST_PAUSE_SECONDS", 0)

    (drill,) = (each for each in DRILLS if each.name == "random-kills")

    with pytest.raises(DrillError, match="none was started again"):
        drill.strike(FakeEnvironment())


def test_an_unknown_drill_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["lost-chequepoint"])
    assert "lost-checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize("answer", ["", "n", "no", "ye"])
def test_without_a_yes_no_drill_damages_the_stack(
    answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n" if answer else ""))
    monkeypatch.setattr(DrillEnvironment, "of_running_stack", lambda: pytest.fail("it has begun"))

    assert main(["lost-checkpoint"]) == 1
    assert main(["--dry-run"]) == 0

    shown = capsys.readouterr().out
    assert "Nothing was damaged." in shown
    assert all(drill.name in shown for drill in DRILLS)


def test_the_faulty_contract_swaps_two_games_and_no_others(tmp_path: Path) -> None:
    good = load_games(CONTRACT).games
    file = tmp_path / "games.yaml"
    file.write_text(swapped(CONTRACT, good[0].name, good[1].name))

    bad = load_games(file).games

    assert [each.name for each in bad] == [each.name for each in good]
    assert [bad[0].match, bad[1].match] == [good[1].match, good[0].match]
    assert [each.match for each in bad[2:]] == [each.match for each in good[2:]]


def test_the_manual_has_every_drill_and_no_other() -> None:
    section = MANUAL.split("## Drills\n")[1].split("\n## ")[0]

    assert re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE) == [drill.name for drill in DRILLS]
    assert {drill.bound.total_seconds() for drill in DRILLS} == {60, 90}
    assert "at most 60 s for a service, 90 s for the stack" in " ".join(section.split())
