"""A player's variants: from the gateway by a thread, from a file without a gateway, and never by an error."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from services.sdk import ExperimentFile, FlagPlayer, Flags, Reply, UnreachableError
from services.sdk.experiment_file import DatedExperiment
from services.sdk.experiments import Experiment
from tests.support.eventually import eventually
from tests.unit.sdk.fake_gateway import CREDENTIALS

PLAYER = FlagPlayer("player-1", {"platform": "ios"})
NOW = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
SHOP = Experiment("shop", "shop", 10_000, [("control", 5_000), ("offer", 5_000)], {})
FILE = ExperimentFile("kart_rumble", int(NOW) + 60, {"shop": DatedExperiment(SHOP, 0, int(NOW) + 60)})
ANSWER = {
    "flags": [
        {"key": "shop", "value": "offer", "variant": "offer", "reason": "SPLIT", "metadata": {"exposure": True}},
        {"key": "map", "value": "control", "variant": "control", "reason": "DEFAULT", "metadata": {}},
    ]
}


def answered(content: object = ANSWER, **headers: str) -> Reply:
    return Reply(200, {"etag": '"1"'} | headers, json.dumps(content).encode())


@dataclass(slots=True)
class Gateway:
    """Answers requests as a test defines."""

    answer: Callable[[Mapping[str, object], Mapping[str, str]], Reply]
    requests: list[tuple[Mapping[str, object], Mapping[str, str]]] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """The answer."""
        self.requests.append((json.loads(body), headers))
        return self.answer(*self.requests[-1])

    def close(self) -> None:
        """Remember it."""
        self.closed.set()


def flags_of(gateway: Gateway, fallback: ExperimentFile | None = None, clock: float = NOW) -> Flags:
    return Flags(gateway, CREDENTIALS, PLAYER, fallback, timedelta(milliseconds=1), lambda: clock)


def unreachable(*_request: object) -> Reply:
    raise UnreachableError("ConnectTimeoutError")


def test_variants_come_from_the_gateways_answer_about_all_experiments() -> None:
    gateway = Gateway(lambda *_: answered())
    flags = flags_of(gateway)

    assert flags.refresh()
    assert [flags.variant_of(each) for each in ("shop", "map", "unknown")] == ["offer", None, None]
    [(body, headers)] = gateway.requests
    assert body == {"context": {"targetingKey": "player-1", "platform": "ios"}}
    assert {"gamelake-key", "gamelake-timestamp", "gamelake-signature"} <= headers.keys()


def test_an_attribute_replaces_no_player() -> None:
    gateway = Gateway(lambda *_: answered())
    player = FlagPlayer("player-1", {"targetingKey": "player-2"})

    Flags(gateway, CREDENTIALS, player).refresh()

    assert gateway.requests[0][0] == {"context": {"targetingKey": "player-1"}}


def test_an_unchanged_answer_is_not_sent_again() -> None:
    gateway = Gateway(lambda _, headers: Reply(304, {}, b"") if "if-none-match" in headers else answered())
    flags = flags_of(gateway)

    assert flags.refresh()
    assert flags.refresh()
    assert gateway.requests[1][1]["if-none-match"] == '"1"'
    assert flags.variant_of("shop") == "offer"


def test_the_file_answers_until_the_gateway_does() -> None:
    gateway = Gateway(unreachable)
    flags = flags_of(gateway, FILE)

    assert not flags.refresh()
    assert flags.variant_of("shop") == SHOP.variant_of("player-1")
    gateway.answer = lambda *_: answered({"flags": []})
    assert flags.refresh()
    assert flags.variant_of("shop") is None


def test_an_expired_file_answers_no_more() -> None:
    assert flags_of(Gateway(unreachable), FILE, NOW + 60).variant_of("shop") is None


def test_known_variants_stay_while_the_gateway_is_unreachable() -> None:
    gateway = Gateway(lambda *_: answered())
    flags = flags_of(gateway, FILE)
    flags.refresh()
    gateway.answer = unreachable

    assert not flags.refresh()
    assert (flags.variant_of("shop"), flags.problem) == ("offer", "no response: ConnectTimeoutError")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, {}, b"<html>log in</html>"),
        Reply(200, {}, b'{"flags": [{}]}'),
        Reply(200, {}, b"[" * 10_000),
        Reply(304, {}, b""),
        Reply(401, {}, b""),
        Reply(429, {"retry-after": "3"}, b""),
        Reply(503, {}, b""),
    ],
)
def test_any_other_answer_is_a_problem_and_no_error(reply: Reply) -> None:
    flags = flags_of(Gateway(lambda *_: reply), FILE)

    assert not flags.refresh()
    assert str(reply.status) in flags.problem
    assert flags.variant_of("shop") == SHOP.variant_of("player-1")


def test_an_error_of_the_transport_does_not_reach_the_game() -> None:
    def broken(*_request: object) -> Reply:
        raise RuntimeError("player-1")

    flags = flags_of(Gateway(broken))

    assert not flags.refresh()
    assert flags.problem == "the request can't be sent: RuntimeError"


def test_a_device_with_a_wrong_clock_signs_by_the_gateways_time() -> None:
    date = format_datetime(datetime.fromtimestamp(NOW, UTC), usegmt=True)

    def answer(_body: object, headers: Mapping[str, str]) -> Reply:
        is_timely = abs(int(headers["gamelake-timestamp"]) - NOW) < 300
        return answered(date=date) if is_timely else Reply(401, {"date": date}, b"")

    assert flags_of(Gateway(answer), clock=NOW - 86_400).refresh()


def test_a_thread_asks_again_and_ends_when_the_flags_are_closed() -> None:
    gateway = Gateway(lambda *_: answered())
    flags = flags_of(gateway)
    flags.start()

    eventually(lambda: len(gateway.requests) > 2)
    flags.close()

    assert gateway.closed.is_set()
    assert flags.variant_of("shop") == "offer"


def test_a_player_is_in_no_text_of_an_object() -> None:
    assert "player-1" not in repr(PLAYER)
