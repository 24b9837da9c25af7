"""A store that gives hostile answers, while a stream of several games takes a batch."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

from hypothesis import strategies as st

from gamelake.objects.store import Location
from tests.embedded.memory_store import Answer, MemoryStore, Request, rightly
from tests.unit.poison.budgets import budget
from tests.unit.poison.kafka_attacks import (
    NEIGHBOUR,
    TARGETS,
    HostileRecord,
    Stream,
    check_accounts,
    event_bytes,
    slow_registry,
)
from tests.unit.streaming.tasks import an_event

# What a client of the store tries again by itself ends a request soon if it comes no more than so often.
_MOST_RETRIED = 2
_STARTS = 12
_SLOW_SECONDS = 0.3
_HTML = b"<!DOCTYPE html><html><body><h1>Sign in</h1></body></html>"


class Hostility(StrEnum):
    """What the store does instead of a right answer."""

    FORBIDDEN = "403"
    ARCHIVED = "403 for this object"
    MISSING = "404"
    CONFLICT = "412"
    REFUSED = "501"
    FAILED = "500"
    BUSY = "503"
    CLOSED = "closes the connection"
    LOST = "does it, and closes the connection"
    DONE_AND_FAILED = "does it, and says 500"
    CUT = "cuts the body"
    SHORTER = "leaves out the end of the body"
    LONGER = "adds to the body"
    OTHER = "gives another body"
    EMPTY = "gives no body"
    PAGE = "gives a page of a proxy"
    MISSING_PAGE = "gives a page of a proxy with 404"
    SLOW = "takes its time"


# A client tries again after these.
_RETRIED = frozenset({
    Hostility.REFUSED, Hostility.FAILED, Hostility.BUSY, Hostility.CLOSED, Hostility.LOST, Hostility.DONE_AND_FAILED,
    Hostility.CUT,
})  # fmt: skip
_FIXED: Mapping[Hostility, Answer] = {
    Hostility.FORBIDDEN: Answer.refusal(403, "AccessDenied"),
    Hostility.ARCHIVED: Answer.refusal(403, "InvalidObjectState"),
    Hostility.MISSING: Answer.refusal(404, "NoSuchKey"),
    Hostility.CONFLICT: Answer.refusal(412, "PreconditionFailed"),
    Hostility.REFUSED: Answer.refusal(501, "NotImplemented"),
    Hostility.FAILED: Answer.refusal(500, "InternalError"),
    Hostility.BUSY: Answer.refusal(503, "SlowDown"),
    Hostility.PAGE: Answer(200, _HTML, {"content-type": "text/html"}),
    Hostility.MISSING_PAGE: Answer(404, _HTML, {"content-type": "text/html"}),
}


def _changed(hostility: Hostility, right: Answer) -> Answer | None:
    """A right answer as a hostile store gives it, after it has done what was asked."""
    body, headers = right.body, right.headers
    if hostility is Hostility.LOST:
        return None
    if hostility is Hostility.DONE_AND_FAILED:
        return Answer.refusal(500, "InternalError")
    if hostility is Hostility.CUT:
        return Answer(right.status, body, headers, missing=len(body) // 2)
    if hostility is Hostility.SLOW:
        time.sleep(_SLOW_SECONDS)
        return right
    bodies = {
        Hostility.SHORTER: body[: len(body) // 2],
        Hostility.LONGER: body + body,
        Hostility.OTHER: bytes(reversed(body)),
        Hostility.EMPTY: b"",
    }
    return Answer(right.status, bodies[hostility], headers)


def _hostile(hostility: Hostility, request: Request, right: Callable[[], Answer]) -> Answer | None:
    if hostility is Hostility.CLOSED:
        return None
    return _FIXED[hostility] if hostility in _FIXED else _changed(hostility, right())


@dataclass(frozen=True, slots=True)
class StoreAttack:
    """Hostile answers.

    Attributes:
        at: by the number of the first request that gets them, each with their number.
        table: what each request about the first target's table gets while the batch is taken; None for right answers.
        is_first: they come from the first batch on, which creates the tables.
    """

    at: Mapping[int, tuple[Hostility, int]] = field(default_factory=dict)
    table: Hostility | None = None
    is_first: bool = False


def _times(hostility: Hostility) -> st.SearchStrategy[tuple[Hostility, int]]:
    most = _MOST_RETRIED if hostility in _RETRIED else 4
    return st.tuples(st.just(hostility), st.integers(1, most))


_HOSTILITIES = st.sampled_from(Hostility)
STORE_ATTACKS = st.one_of(
    st.builds(
        StoreAttack,
        # A batch takes about 20 requests, a start and a batch 120.
        at=st.dictionaries(
            st.one_of(st.integers(1, 20), st.integers(1, 150)), _HOSTILITIES.flatmap(_times), min_size=1, max_size=4
        ),
        is_first=st.booleans(),
    ),
    st.builds(StoreAttack, table=st.sampled_from([each for each in Hostility if each not in _RETRIED])),
)


class _HostileAnswers:
    """Answers the requests from its making on."""

    def __init__(self, attack: StoreAttack) -> None:
        self._attack = attack
        self._number = 0
        self._left: list[Hostility] = []

    def __call__(self, request: Request, right: Callable[[], Answer]) -> Answer | None:
        """Give the answer to the next request."""
        if self._attack.table is not None:
            is_hit = request.key.startswith(TARGETS[0].table)
            return _hostile(self._attack.table, request, right) if is_hit else right()
        self._number += 1
        if self._number in self._attack.at:
            hostility, times = self._attack.at[self._number]
            self._left += [hostility] * times
        return _hostile(self._left.pop(), request, right) if self._left else right()


class _StreamInStore(Stream):
    """A stream whose lakehouse is in the store; Spark's checkpoint is there too."""

    def __init__(self, folder: Path, objects: dict[str, bytes], location: Location) -> None:
        self._objects = objects
        self._checkpoint = folder / "lakehouse"
        super().__init__(folder, location)

    def log_batch(self) -> None:
        """Write the planned batch to the checkpoint, as Spark does, whose requests get right answers."""
        super().log_batch()
        files = (path for path in self._checkpoint.rglob("*") if path.is_file())
        self._objects |= {str(path.relative_to(self._checkpoint)): path.read_bytes() for path in files}


def _records() -> Sequence[HostileRecord]:
    return [
        HostileRecord(value=event_bytes(an_event(gameName=game.match[0])), partition=partition)
        for game in TARGETS[:2]
        for partition in (0, 1)
    ]


def check_store_attack(attack: StoreAttack, folder: Path) -> None:
    """Have the store answer as an attack says; once it answers rightly, each event must be there, and once."""
    store = MemoryStore()
    with slow_registry(), store.served("lake") as location:
        stream = _StreamInStore(folder, store.objects, location)
        if not attack.is_first:
            stream.take(_records())
        stream.send(_records())
        store.answering = _HostileAnswers(attack)
        with budget():
            if attack.table is None:
                _until_it_succeeds(stream, stream.run)
                _until_it_succeeds(stream, stream.start)
                stream.send(_records())
                _until_it_succeeds(stream, stream.run)
            else:
                _require_that_others_go_on(stream)
        store.answering = rightly
        with budget():
            stream.start()
            stream.run()
            stream.take(_records())
            stream.start()
            stream.take([])
        check_accounts(stream)


def _until_it_succeeds(stream: Stream, step: Callable[[], None]) -> None:
    """Start the process again each time that it ends."""
    for _ in range(_STARTS):
        with suppress(Exception):
            step()
            return
        step = partial(_start_and_run, stream)


def _start_and_run(stream: Stream) -> None:
    stream.start()
    stream.run()


def _require_that_others_go_on(stream: Stream) -> None:
    before = stream.places(NEIGHBOUR.table)
    stream.run()
    after = stream.places(NEIGHBOUR.table)
    assert sum((after - before).values()) > 0, "the table of another game has no new rows"
    assert max(Counter(after).values()) == 1
