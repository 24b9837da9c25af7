"""A gateway without a socket: it answers by the real one's rules, or as a test has told it to."""

import gzip
import hmac
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from services.sdk import Backoff, BatchLimits, Client, Credentials, Options, Outcome, Reply, UnreachableError
from services.sdk.batches import Form, Parcel

KEY, SECRET = "key-1", "s" * 32
CREDENTIALS = Credentials(KEY, SECRET)
# Soon enough for a test, and still a wait.
QUICK = Backoff(first=timedelta(milliseconds=1), longest=timedelta(milliseconds=4))
PATIENCE = timedelta(seconds=20)
AT_ONCE = BatchLimits(wait=timedelta(0))
WHEN_ASKED = BatchLimits(wait=timedelta(hours=1))

Answer = Callable[["Request"], Reply]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the gateway reads it."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def content(self) -> bytes:
        """The body, unpacked."""
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body

    @property
    def events(self) -> tuple[bytes, ...]:
        """Each event as it was written."""
        if self.headers["content-type"] == Form.JSON.content_type:
            return tuple(json.dumps(event).encode() for event in json.loads(self.content)["events"])
        return Parcel(1, Form.PROTOBUF, 1, self.content).events()


def accept(request: Request) -> Reply:
    """All events are fine."""
    return answer(200, {"accepted": len(request.events), "rejected": []})


def answer(status: int, told: object, **headers: str) -> Reply:
    """An answer with a JSON body."""
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(told).encode())


def refuse(status: int, **headers: str) -> Answer:
    """Give a status whatever is sent."""
    return lambda _request: answer(status, {"error": f"no: {status}"}, **headers)


def unreachable(_request: Request) -> Reply:
    """Nobody answers."""
    raise UnreachableError("refused")


@dataclass(slots=True)
class FakeGateway:
    """Gives the answers that a test has put down, in order, then accepts everything."""

    answers: deque[Answer] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    always: Answer = accept
    closed: threading.Event = field(default_factory=threading.Event)

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Answer."""
        request = Request(body, headers)
        self.requests.append(request)
        return (self.answers.popleft() if self.answers else self.always)(request)

    def close(self) -> None:
        """Remember that nobody asks any more."""
        self.closed.set()

    @property
    def seen(self) -> list[bytes]:
        """All events of all requests."""
        return [event for request in self.requests for event in request.events]


@dataclass(slots=True)
class TimedGateway:
    """Refuses what is signed for another time than its own; `now` in seconds since 1970."""

    now: float
    requests: list[Request] = field(default_factory=list)

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Answer."""
        request = Request(body, headers)
        self.requests.append(request)
        date = format_datetime(datetime.fromtimestamp(self.now, UTC), usegmt=True)
        timestamp = headers["gamelake-timestamp"]
        expected = hmac.digest(SECRET.encode(), timestamp.encode() + b"." + body, "sha256").hex()
        if abs(int(timestamp) - self.now) > 300 or headers["gamelake-signature"] != expected:
            return answer(401, {"error": "not now"}, date=date)
        return answer(200, {"accepted": len(request.events), "rejected": []}, date=date)

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(slots=True)
class Told:
    """What a game was told."""

    outcomes: list[Outcome] = field(default_factory=list)

    def note(self, outcome: Outcome) -> None:
        """One more outcome."""
        self.outcomes.append(outcome)

    @property
    def accepted(self) -> list[bytes]:
        """Events that Kafka has."""
        return [event for outcome in self.outcomes for event in outcome.accepted_events()]


def client(gateway: FakeGateway | TimedGateway, told: Told, options: Options | None = None) -> Client:
    """A client that loses no time."""
    return Client(gateway, CREDENTIALS, options or Options(batch=WHEN_ASKED, backoff=QUICK), told.note)
