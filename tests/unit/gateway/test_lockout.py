"""Which clients are locked out after wrong signatures, and which are not."""

from datetime import timedelta

import pytest

from services.gateway.authentication import GameKey
from services.gateway.errors import AuthenticationError, LockedOutError
from services.gateway.lockout import ClientLockout, network_of

KEY = GameKey(id="archery-1", game="archery_duel", secrets=("x" * 32,))
OTHER_KEY = GameKey(id="bingo-1", game="bingo_harbor", secrets=("x" * 32,))
ATTACKER, NEIGHBOUR, OTHER_NETWORK = "192.0.2.1:4711", "192.0.2.1:4712", "192.0.2.2:4711"
REMEMBERED = 10_000


def lockout(allowed: int = 3) -> ClientLockout:
    return ClientLockout(allowed, timedelta(seconds=60))


def send_wrong(to: ClientLockout, client: str = ATTACKER, times: int = 3, now: float = 0.0) -> None:
    for _ in range(times):
        with pytest.raises(AuthenticationError), to.counting(KEY, client, now):
            raise AuthenticationError("wrong")


def send_right(to: ClientLockout, client: str) -> None:
    with to.counting(KEY, client, 0.0):
        pass


def test_a_network_with_too_many_wrong_signatures_learns_when_it_may_send_again() -> None:
    locked = lockout()
    send_wrong(locked)

    with pytest.raises(LockedOutError) as refused:
        locked.check(KEY, NEIGHBOUR, now=20.0)
    locked.check(KEY, NEIGHBOUR, now=60.0)

    assert refused.value.retry_after == timedelta(seconds=40)


def test_no_other_network_and_no_other_key_is_locked_out() -> None:
    locked = lockout()
    send_wrong(locked)

    locked.check(KEY, OTHER_NETWORK, now=1.0)
    locked.check(OTHER_KEY, ATTACKER, now=1.0)


def test_a_connection_with_a_right_signature_stays_open_until_it_sends_a_wrong_one() -> None:
    locked = lockout()
    send_right(locked, NEIGHBOUR)
    send_wrong(locked)

    locked.check(KEY, NEIGHBOUR, now=1.0)
    send_wrong(locked, NEIGHBOUR, times=1)

    with pytest.raises(LockedOutError):
        locked.check(KEY, NEIGHBOUR, now=1.0)


def test_few_wrong_signatures_in_each_window_lock_nothing_out() -> None:
    locked = lockout()
    for minute in range(10):
        send_wrong(locked, times=2, now=minute * 60.0)

    locked.check(KEY, ATTACKER, now=600.0)


def test_zero_allowed_wrong_signatures_turn_it_off() -> None:
    off = lockout(allowed=0)
    send_wrong(off, times=100)

    off.check(KEY, ATTACKER, now=1.0)


def test_ten_thousand_networks_are_remembered_and_the_oldest_are_forgotten() -> None:
    locked = lockout(allowed=1)
    networks = [f"10.0.{number // 256}.{number % 256}:443" for number in range(REMEMBERED + 1)]
    for network in networks:
        send_wrong(locked, network, times=1)

    locked.check(KEY, networks[0], now=1.0)
    for network in (networks[1], networks[-1]):
        with pytest.raises(LockedOutError):
            locked.check(KEY, network, now=1.0)


def test_ten_thousand_connections_are_remembered_and_the_oldest_are_forgotten() -> None:
    locked = lockout()
    connections = [f"192.0.2.1:{port}" for port in range(REMEMBERED + 1)]
    for connection in connections:
        send_right(locked, connection)
    send_wrong(locked, "192.0.2.1:60000")

    for connection in (connections[1], connections[-1]):
        locked.check(KEY, connection, now=1.0)
    with pytest.raises(LockedOutError):
        locked.check(KEY, connections[0], now=1.0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1:1", "192.0.2.1:2", True),
        ("192.0.2.1:1", "192.0.2.11:1", False),
        ("[2001:db8::a:b:c:d]:1", "[2001:db8::1]:2", True),
        ("[2001:db8:0:1::1]:1", "[2001:db8::1]:1", False),
        ("[::ffff:192.0.2.1]:1", "192.0.2.1:2", True),
        ("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", False),
        ("unix", "unix", True),
    ],
)
def test_a_network_is_an_ipv4_address_or_64_bits_of_ipv6(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same
