"""How many events one process may hold at a time."""

import pytest

from services.gateway.errors import NotTakenError
from services.gateway.limits import Room


def test_who_comes_when_there_is_no_room_is_sent_away_and_may_come_again() -> None:
    room = Room(10)

    with room.taken(6), pytest.raises(NotTakenError), room.taken(5):
        pass

    with room.taken(5), room.taken(5):
        pass


def test_a_request_that_is_larger_than_the_room_is_taken_when_it_is_alone() -> None:
    with Room(10).taken(20):
        pass


def test_a_request_that_failed_leaves_its_room() -> None:
    room = Room(10)

    with pytest.raises(ZeroDivisionError), room.taken(10):
        raise ZeroDivisionError

    with room.taken(10):
        pass
