"""Hostile requests for flags, and a good player's requests at the same time."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from services.gateway.flags.endpoint import FLAGS_PATH, MOST_BODY_BYTES
from services.gateway.flags.messages import ErrorCode
from services.gateway.responses import Response
from services.sdk import Experiment
from tests.unit.gateway.flag_requests import (
    CONDITIONAL,
    GAME,
    OTHER_GAME,
    RUNNING,
    SLOW_KEY,
    SUPPORT_KEY,
    Flags,
    answer_of,
    context,
)
from tests.unit.poison.budgets import budget
from tests.unit.poison.gateway_attacks import IncomingRequest, headers_of
from tests.unit.poison.gateway_requests import HEADERS, MIB, HostileRequest, hostile_requests

MEMORY = 32 * MIB
_MOST_MIB = 32
_REFUSALS = frozenset({400, 401, 403, 404, 405, 413, 415, 429})
_PLAYER = "player-1"
_VARIANT = Experiment(RUNNING, RUNNING, 10_000, [("control", 5_000), ("offer", 5_000)], {}).variant_of(_PLAYER)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagAttack:
    """A hostile request for one flag or all flags; `key` signs it unless its headers say otherwise."""

    request: HostileRequest
    method: str
    flag: str | None
    key: str


_VALID = json.dumps(context("attacker", platform="ios")).encode()
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["targetingKey", "context", "platform", "country", "x"]), inner)
    ),
    max_leaves=6,
)
_CONTENTS = st.one_of(
    st.just(_VALID),
    st.binary(max_size=60),
    _VALUES.map(lambda value: json.dumps(value).encode()),
    _VALUES.map(lambda value: json.dumps({"context": value}).encode()),
    _VALUES.map(lambda value: json.dumps(context(value, platform=value)).encode()),
    st.sampled_from([
        b"", b"{}", b"[]", b"null", b"0", b"{}{}", b'{"context":null}', b'{"context":{}}', b'{"context":[]}',
        b'{"context":{"targetingKey":null}}', b'{"context":{"targetingKey":""}}',
        b'{"context":{"targetingKey":"\\ud800"}}',
        b'{"context":{"targetingKey":"\xff"}}', b'{"context":{"targetingKey":1e999}}',
        b'{"context":{"targetingKey":NaN}}',
        b'{"context":{"targetingKey":"a","targetingKey":1}}', b'{"context":1,"context":{"targetingKey":"a"}}',
        b'{"context":{"targetingKey":"a","platform":' + b"[" * 9_000, b'{"context":' * 1_000, b"[" * 16_000,
        b'{"context":{"targetingKey":"%s"}}' % (b"x" * (MOST_BODY_BYTES - 40)), b" " * (MOST_BODY_BYTES + 1),
        bytes(MIB), b"\xef\xbb\xbf" + _VALID, _VALID * 2, _VALID.decode().encode("utf-16"),
    ]),
    st.integers(0, len(_VALID)).map(lambda end: _VALID[:end]),
    st.builds(lambda at, some: _VALID[:at] + some + _VALID[at:], st.integers(0, len(_VALID)), st.binary(max_size=4)),
)  # fmt: skip
_KNOWN_TAGS: st.SearchStrategy[Mapping[str, str | None]] = st.fixed_dictionaries(
    {"if-none-match": st.sampled_from(["", "*", '"', "W/", "W/*", ",", ", *", "x" * 9_000, '"x", ' * 1_000])}
)
_ONE_HEADER: st.SearchStrategy[Mapping[str, str | None]] = st.builds(
    lambda headers, place: dict([*headers.items()][place : place + 1]), HEADERS, st.integers(0, 5)
)
_FLAGS = st.one_of(
    st.sampled_from([RUNNING, CONDITIONAL, "of_another_game", "", "/", f"{RUNNING}/", "../events", "x" * 9_000]),
    # The server replaces bytes that are not UTF-8.
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)  # fmt: skip
FLAG_ATTACKS: st.SearchStrategy[Sequence[FlagAttack]] = st.lists(
    st.builds(
        FlagAttack,
        request=hostile_requests(_CONTENTS, st.one_of(_ONE_HEADER, _KNOWN_TAGS, HEADERS)),
        method=st.sampled_from(["POST"] * 54 + ["GET", "HEAD", "PUT", "OPTIONS", "post", ""]),
        flag=st.one_of(st.none(), _FLAGS),
        key=st.sampled_from([*[OTHER_GAME] * 5, GAME, SUPPORT_KEY, SLOW_KEY, "unknown-key"]),
    ),
    max_size=8,
)


def check_flag_attack(attack: Sequence[FlagAttack], flags: Flags) -> None:
    """Send an attack; bad requests get 4xx with OFREP's error body, and a good player gets variants meanwhile."""
    with budget(_MOST_MIB):
        before, *hostile, after = asyncio.run(_send_all(attack, flags))
    for each, response in zip(attack, hostile, strict=True):
        _check(each, response)
    for response in (before, after):
        assert (response.status, answer_of(response)["value"]) == (HTTPStatus.OK, _VARIANT)
    assert flags.endpoint.memory.reserved == 0


async def _send_all(attack: Sequence[FlagAttack], flags: Flags) -> Sequence[Response]:
    content = json.dumps(context(_PLAYER)).encode()
    request = HostileRequest(chunks=[content], headers={})
    good = FlagAttack(request=request, method="POST", flag=RUNNING, key=GAME)
    return await asyncio.gather(*[_send(each, flags) for each in (good, *attack, good)])


async def _send(attack: FlagAttack, flags: Flags) -> Response:
    path = FLAGS_PATH if attack.flag is None else f"{FLAGS_PATH}/{attack.flag}"
    scope = SimpleNamespace(method=attack.method, path=path, headers=headers_of(attack.request, attack.key))
    return await flags.endpoint.respond(scope, IncomingRequest(attack.request))


def _check(attack: FlagAttack, response: Response) -> None:
    headers = dict(response.headers)
    if response.status == HTTPStatus.NOT_MODIFIED:
        assert attack.flag is None
        assert (response.body, "etag" in headers) == (b"", True)
        return
    answer = answer_of(response)
    assert headers["content-type"] == "application/json"
    if response.status == HTTPStatus.OK:
        assert (answer["key"] == attack.flag) if attack.flag is not None else isinstance(answer["flags"], list)
        return
    assert response.status in _REFUSALS, response
    assert answer.keys() == {"errorCode", "errorDetails"} | ({"key"} if attack.flag is not None else set())
    assert (answer["errorCode"] in set(ErrorCode), answer.get("key")) == (True, attack.flag)
    assert answer["errorDetails"]
    assert response.status != HTTPStatus.TOO_MANY_REQUESTS or "retry-after" in headers
