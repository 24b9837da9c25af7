"""The rate of a run, and its command line."""

import io
import threading
from datetime import timedelta

import pytest

from gamelake.model.errors import ContractError
from gamelake.schemas.event_schemas import load_schemas
from tools.simulator.cli import parse
from tools.simulator.pacing import Pacer, ProgressLine, events_per_step
from tools.simulator.spec import NEWEST_VERSION, Shares

_ADDRESSES = ["--target", "kafka", "--bootstrap-servers", "kafka:9092", "--registry-url", "http://registry"]


class _Sleeper(threading.Event):
    """A stop flag that notes the waits for it, and lets that time pass."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.slept: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.slept.append(timeout or 0.0)
        self.now += timeout or 0.0
        return False


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_rate_is_held() -> None:
    sleeper = _Sleeper()
    pacer = Pacer(1_000, sleeper, monotonic_seconds=lambda: sleeper.now)

    for _ in range(50):
        pacer.wait_after(20)

    assert sleeper.now == pytest.approx(1.0)


def test_a_sender_that_is_behind_does_not_sleep() -> None:
    sleeper = _Sleeper()
    pacer = Pacer(1_000, sleeper, monotonic_seconds=lambda: sleeper.now)
    sleeper.now = 5.0

    pacer.wait_after(20)

    assert sleeper.slept == []


@pytest.mark.parametrize(("rate", "events"), [(1, 1), (50, 25), (1_000, 100), (20_000, 1_000), (100_000, 5_000)])
def test_a_step_lasts_a_few_milliseconds_and_half_a_second_where_events_are_few(rate: int, events: int) -> None:
    assert events_per_step(rate) == events


def test_only_addresses_are_required() -> None:
    options = parse(_ADDRESSES)

    assert options.events == 1_000_000
    assert options.games == 30
    assert options.shares == Shares()


def test_each_share_can_be_set() -> None:
    options = parse([*_ADDRESSES, "--late", "0", "--unknown-game", "0.5", "--null-time", "0.25"])

    assert options.shares == Shares(late=0, unknown_game=0.5, null_time=0.25)


def test_events_at_a_rate_happen_now_and_others_in_the_last_minutes() -> None:
    assert parse([*_ADDRESSES, "--rate", "100"]).history == timedelta(0)
    assert parse(_ADDRESSES).history == timedelta(minutes=5)
    assert parse([*_ADDRESSES, "--rate", "100", "--history", "60"]).history == timedelta(minutes=1)


def test_a_version_that_the_contract_lacks_is_named() -> None:
    contracts = parse(_ADDRESSES).contracts

    with pytest.raises(ContractError, match=f"version {NEWEST_VERSION + 1}"):
        load_schemas(contracts, NEWEST_VERSION + 1)


def test_progress_is_written_to_a_terminal() -> None:
    terminal = _Terminal()
    progress = ProgressLine(2_000, terminal)

    progress.advance(1_500)
    progress.close()

    assert "1,500 of 2,000 events" in terminal.getvalue()


def test_no_progress_is_written_to_a_file() -> None:
    file = io.StringIO()

    ProgressLine(10, file).close()

    assert file.getvalue() == ""
