"""Sends events of all values to the gateway, and keeps what was sent and what the gateway replied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import zstandard
from hypothesis import given

from services.sdk.batches import delimited
from tests.embedded.effort import fuzzing
from tests.embedded.extreme_values import ACCEPTED, REFUSED, REJECTED, REJECTED_PROTOBUF, twice
from tests.embedded.gateway import LIMITED_KEY, Gateway, Reply
from tests.embedded.submitted_values import Fields, Reach, SubmittedEvent, any_fields, as_json
from tests.support.table_values import Values

JSON, PROTOBUF = "application/json", "application/x-protobuf"
OTHER_GAME = "Bingo Harbor"
# This many events make the gateway prepare them as columns (services/gateway/events/preparation.py).
_COLUMNAR_EVENTS = 400
_MOST_BYTES = 900_000


@dataclass
class Submissions:
    """What was sent, and the gateway's replies by the case's name."""

    gateway: Gateway
    accepted: list[SubmittedEvent] = field(default_factory=list)
    by_case: dict[str, list[SubmittedEvent]] = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)
    again: int = 0
    of_other_game: list[SubmittedEvent] = field(default_factory=list)
    by_kafka: list[SubmittedEvent] = field(default_factory=list)

    def send_accepted(self, events: Sequence[SubmittedEvent], content_type: str, *, escaped: bool = False) -> None:
        """Send events all of which must be accepted, in one request."""
        self.accepted += events
        body = _json(events, escaped) if content_type == JSON else _protobuf(events)
        assert self.send(body, content_type).result.rejected == []

    def send(self, body: bytes, content_type: str = JSON, **headers: str) -> Reply:
        """Send a body, and what is large compressed."""
        if len(body) > _MOST_BYTES and not headers:
            body, headers = zstandard.compress(body), {"content_encoding": "zstd"}
        return self.gateway.send(body, content_type=content_type, **headers)

    def send_cases(self) -> None:
        """Send each extreme value on its own, in both formats, and with a good event next to what is rejected."""
        for name, changes in ACCEPTED.items():
            by_json, by_protobuf = SubmittedEvent(changes), SubmittedEvent(changes)
            self.by_case[name] = [by_json, by_protobuf]
            self.send_accepted([by_json], JSON, escaped=len(self.by_case) % 2 > 0)
            self.send_accepted([by_protobuf], PROTOBUF)
        for name, (text, event) in twice().items():
            self.by_case[name] = [event]
            self.accepted.append(event)
            self.replies[name] = self.send(f'{{"events": [{text}]}}'.encode())
        for name, (text, *_) in REJECTED.items():
            self.replies[name] = self.send(_with_good(self._good(), text))
        for name, (changes, *_) in REJECTED_PROTOBUF.items():
            events = [SubmittedEvent(changes), self._good()]
            self.replies[name] = self.send(_protobuf(events), PROTOBUF)
        for name, (text, _) in REFUSED.items():
            # Not of use: no event of a refused body is accepted.
            body = _with_good(SubmittedEvent({}), text)
            self.replies[name] = self.gateway.send(body)

    def _good(self) -> SubmittedEvent:
        good = SubmittedEvent({})
        self.accepted.append(good)
        return good

    def send_generated(self) -> None:
        """Send random events: few in a request, which the gateway reads one by one, and many, which become columns."""
        small = [SubmittedEvent(changes) for changes in ACCEPTED.values() if len(str(changes)) < 50_000]
        for content_type, reach in ((JSON, Reach.JSON), (PROTOBUF, Reach.PROTOBUF)):
            for part in _parts(_drawn(reach), 20):
                self.send_accepted(part, content_type)
            for part in _parts(_drawn(Reach.COLUMNS), _COLUMNAR_EVENTS):
                plain = [SubmittedEvent({}) for _ in range(_COLUMNAR_EVENTS - len(part))]
                self.send_accepted([*part, *plain], content_type)
        for content_type in (JSON, PROTOBUF):
            self.send_accepted([SubmittedEvent(each.changes) for each in small], content_type)

    def send_again(self) -> None:
        """Send the last events once more."""
        last = self.accepted[-20:]
        assert self.send(_json(last, escaped=True)).result.accepted == len(last)
        self.again = len(last)

    def send_of_other_game(self) -> None:
        """Send the events of a well-behaved game: 40 of 4 players, some of which buy something."""
        for number in range(40):
            params = {"platform": "ios", "app_version": "1.0", "level": number}
            bought = {"amount": 0.1} if number % 5 == 0 else {}
            name = "purchase" if bought else "session_start"
            changes = {
                "game_name": OTHER_GAME,
                "event_name": name,
                "gamer_id": f"player-{number % 4}",
                "session_id": f"session-{number % 8}",
                "event_params": params | bought,
            }
            self.of_other_game.append(SubmittedEvent(changes))
        body = _json(self.of_other_game, escaped=False)
        assert self.send(body, gamelake_key=LIMITED_KEY).result.accepted == len(self.of_other_game)

    @property
    def expected(self) -> dict[str, Values]:
        """The row of each event, by its id."""
        events = [*self.accepted, *self.of_other_game, *self.by_kafka]
        return {event.event_id: event.row() for event in events}


def _json(events: Sequence[SubmittedEvent], escaped: bool) -> bytes:
    return as_json(events, escaped=escaped)


def _protobuf(events: Sequence[SubmittedEvent]) -> bytes:
    return b"".join(delimited(event.protobuf()) for event in events)


def _with_good(good: SubmittedEvent, text: str) -> bytes:
    return f'{{"events": [{text}, {good.json(escaped=False)}]}}'.encode()


def _drawn(reach: Reach) -> list[SubmittedEvent]:
    drawn: list[Fields] = []

    @fuzzing(40)
    @given(any_fields(reach))
    def draw(fields: Fields) -> None:
        drawn.append(fields)

    draw()
    return [SubmittedEvent(fields) for fields in drawn]


def _parts(events: Sequence[SubmittedEvent], size: int) -> Iterator[Sequence[SubmittedEvent]]:
    for start in range(0, len(events), size):
        yield events[start : start + size]
