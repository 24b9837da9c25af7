"""What a key may send in a day, counted over all processes."""

from datetime import timedelta
from pathlib import Path

import pytest

from gamelake.model.errors import SettingsError
from services.gateway.authentication import GameKey, Quota, read_keys
from services.gateway.errors import RateLimitedError
from services.gateway.limits.quotas import Quotas
from tests.unit.gateway.events import contract

DAY = 86_400.0
NOON = 20_000 * DAY + DAY / 2
SECRET = "x" * 32


def key(events: int | None = 100, size: int | None = None) -> GameKey:
    quota = Quota(events=events, bytes=size)
    return GameKey(id="archery-1", game="archery_duel", secrets=(SECRET,), quota=quota)


def send(to: Quotas, of: GameKey, events: int, size: int = 0, now: float = NOON) -> None:
    with to.reserved(of, events, size, now):
        pass


def is_refused(by: Quotas, of: GameKey, events: int, size: int = 0, now: float = NOON) -> bool:
    try:
        send(by, of, events, size, now)
    except RateLimitedError:
        return True
    return False


def test_a_key_that_has_used_its_quota_is_refused_until_the_day_ends() -> None:
    quotas, mine = Quotas(None), key()
    send(quotas, mine, 100)

    with pytest.raises(RateLimitedError) as refused:
        send(quotas, mine, 1)

    assert refused.value.retry_after == timedelta(hours=12)
    assert is_refused(quotas, mine, 1, now=NOON + DAY / 2 - 1)
    assert not is_refused(quotas, mine, 100, now=NOON + DAY / 2)


def test_a_request_that_is_too_large_for_the_rest_leaves_the_rest_to_smaller_ones() -> None:
    quotas, mine = Quotas(None), key()
    send(quotas, mine, 90)

    assert is_refused(quotas, mine, 11)
    assert not is_refused(quotas, mine, 10)


def test_bytes_are_limited_too() -> None:
    quotas, mine = Quotas(None), key(events=None, size=1000)
    send(quotas, mine, 1_000_000, size=900)

    assert is_refused(quotas, mine, 1, size=101)
    assert not is_refused(quotas, mine, 1, size=100)


def test_a_request_that_fails_does_not_count() -> None:
    quotas, mine = Quotas(None), key()

    with pytest.raises(ZeroDivisionError), quotas.reserved(mine, 100, 0, NOON):
        raise ZeroDivisionError

    assert not is_refused(quotas, mine, 100)


def test_a_request_that_fails_after_midnight_returns_nothing_to_the_new_day() -> None:
    quotas, mine = Quotas(None), key()

    def fail_after_midnight() -> None:
        with quotas.reserved(mine, 100, 0, NOON):
            send(quotas, mine, 100, now=NOON + DAY)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_midnight()

    assert is_refused(quotas, mine, 1, now=NOON + DAY)


def test_a_key_without_a_quota_and_another_key_are_not_limited() -> None:
    quotas = Quotas(None)
    unlimited = GameKey(id="bingo-1", game="bingo_harbor", secrets=(SECRET,))
    send(quotas, key(), 100)

    assert not is_refused(quotas, unlimited, 10_000_000)


def test_processes_know_after_a_refresh_what_the_others_have_accepted(tmp_path: Path) -> None:
    one, other, mine = Quotas(tmp_path), Quotas(tmp_path), key()
    send(one, mine, 60)
    send(other, mine, 30)

    for each in (one, other, one):
        each.refresh([mine], NOON)

    assert is_refused(one, mine, 11)
    assert is_refused(other, mine, 11)
    assert not is_refused(other, mine, 10)


def test_a_process_that_is_started_again_knows_what_its_predecessor_has_accepted(tmp_path: Path) -> None:
    killed, successor, mine = Quotas(tmp_path), Quotas(tmp_path), key()
    send(killed, mine, 100)
    killed.refresh([mine], NOON)

    successor.refresh([mine], NOON)

    assert is_refused(successor, mine, 1)


def test_usage_of_earlier_days_is_deleted_and_what_is_unreadable_is_ignored(tmp_path: Path) -> None:
    old, new, mine = Quotas(tmp_path), Quotas(tmp_path), key()
    send(old, mine, 100)
    old.refresh([mine], NOON)
    (tmp_path / "damaged.json").write_text("{")

    new.refresh([mine], NOON + DAY)

    assert [file.name for file in tmp_path.iterdir()] == ["damaged.json"]
    assert not is_refused(new, mine, 100, now=NOON + DAY)


@pytest.mark.parametrize("quota", ["{events: 0}", "{bytes: -1}", "{rows: 5}", "100"])
def test_an_invalid_quota_in_the_keys_file_is_refused(tmp_path: Path, quota: str) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(f"keys:\n  - {{id: archery-1, game: archery_duel, secrets: [{SECRET}], quota: {quota}}}\n")

    with pytest.raises(SettingsError):
        read_keys(file, contract())


def test_a_quota_in_the_keys_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(f"keys: [{{id: archery-1, game: archery_duel, secrets: [{SECRET}], quota: {{events: 5}}}}]\n")

    assert read_keys(file, contract())["archery-1"].quota == Quota(events=5)
