"""A gateway without a socket: it responds by the real one's rules, or as a test defines."""

import gzip
import hmac
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from services.sdk import Backoff, BatchLimits, BatchOutcome, Client, Credentials, Options, Reply, UnreachableError
from services.sdk.batches import EventFormat, EventGroup

KEY, SECRET = "key-1", "s" * 32
CREDENTIALS = Credentials(KEY, SECRET)
# Short for a test, and still a wait.
QUICK = Backoff(
    first=timedelta(milliseconds=1), longest=timedelta(milliseconds=4), longest_denied=timedelta(milliseconds=8)
)
PATIENCE = timedelta(seconds=20)
AT_ONCE = BatchLimits(wait=timedelta(0))
WHEN_ASKED = BatchLimits(wait=timedelta(hours=1))

Respond = Callable[["Request"], Reply]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the gateway gets it."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def content(self) -> bytes:
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body

    @property
    def events(self) -> tuple[bytes, ...]:
        if self.headers["content-type"] == EventFormat.JSON.content_type:
            return tuple(json.dumps(event).encode() for event in json.loads(self.content)["events"])
        return EventGroup(1, EventFormat.PROTOBUF, 1, self.content).events()


def accept(request: Request) -> Reply:
    return respond(200, {"accepted": len(request.events), "rejected": []})


def respond(status: int, content: object, **headers: str) -> Reply:
    """A response with a JSON body."""
    return Reply(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(content).encode()
    )


def refuse(status: int, **headers: str) -> Respond:
    """Respond to any request with this status."""
    return lambda _request: respond(status, {"error": f"no: {status}"}, **headers)


def unreachable(_request: Request) -> Reply:
    raise UnreachableError("refused")


@dataclass(slots=True)
class FakeGateway:
    """Responds with `responses` in their order, then with `always`."""

    responses: deque[Respond] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    always: Respond = accept
    closed: threading.Event = field(default_factory=threading.Event)

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        request = Request(body, headers)
        self.requests.append(request)
        return (self.responses.popleft() if self.responses else self.always)(request)

    def close(self) -> None:
        """Note that the client has closed its connection."""
        self.closed.set()

    @property
    def seen(self) -> list[bytes]:
        return [event for request in self.requests for event in request.events]


@dataclass(slots=True)
class TimedGateway:
    """Refuses requests signed for another time than its own; `now` in seconds since 1970."""

    now: float
    requests: list[Request] = field(default_factory=list)

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        request = Request(body, headers)
        self.requests.append(request)
        date = format_datetime(datetime.fromtimestamp(self.now, UTC), usegmt=True)
        timestamp = headers["gamelake-timestamp"]
        expected = hmac.digest(SECRET.encode(), timestamp.encode() + b"." + body, "sha256").hex()
        if abs(int(timestamp) - self.now) > 300 or headers["gamelake-signature"] != expected:
            return respond(401, {"error": "not now"}, date=date)
        return respond(200, {"accepted": len(request.events), "rejected": []}, date=date)

    def close(self) -> None:
        """Nothing to close."""


@dataclass(slots=True)
class Outcomes:
    """The outcomes that a client has reported."""

    all: list[BatchOutcome] = field(default_factory=list)

    def add(self, outcome: BatchOutcome) -> None:
        self.all.append(outcome)

    @property
    def accepted(self) -> list[bytes]:
        return [event for outcome in self.all for event in outcome.accepted_events()]


def client(gateway: FakeGateway | TimedGateway, outcomes: Outcomes, options: Options | None = None) -> Client:
    return Client(gateway, CREDENTIALS, options or Options(batch=WHEN_ASKED, backoff=QUICK), outcomes.add)


def messages(count: int, size: int = 40) -> list[bytes]:
    """Return `count` different events of one size."""
    return [f"{number:04}".encode().ljust(size, b".") for number in range(count)]


def send_all(sending: Client, events: list[bytes]) -> None:
    """Send events, and wait until the gateway has them."""
    for event in events:
        sending.send(event)
    assert sending.flush(PATIENCE)
