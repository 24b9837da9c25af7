"""A player's variants from the gateway, kept up to date by a thread; a signed file is used until the gateway answers.

The gateway speaks OpenFeature's remote evaluation protocol (OFREP): one request returns all flags, with an entity tag.
"""

import json
import logging
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Self

from .delivery import DeviceClock, GatewayClock, retry_after_seconds
from .experiment_file import ExperimentFile
from .options import Backoff
from .transport import Credentials, HttpTransport, Transport, UnreachableError

log = logging.getLogger(__name__)

_PATH = "/ofrep/v1/evaluate/flags"
_INTERVAL, _TIMEOUT, _CLOSE_SECONDS = timedelta(minutes=1), timedelta(seconds=5), 2.0
_BACKOFF = Backoff()


@dataclass(frozen=True, slots=True)
class FlagPlayer:
    """A player.

    Attributes:
        name: the game's own name of the player.
        attributes: `platform`, `country` and `app_version`.

    `repr` leaves out both.
    """

    name: str = field(repr=False)
    attributes: Mapping[str, str] = field(default_factory=dict, repr=False)


class Flags:
    """The variants of one player. No method raises an error; only `refresh` and `close` wait for the gateway.

    Args:
        transport: sends requests to the gateway's path for all flags.
        credentials: a key of the game.
        player: the player.
        fallback: used until the first answer of the gateway.
        interval: between two requests. After failures, the pause grows up to five minutes.
        device_clock: seconds since 1970; it may be wrong.
    """

    def __init__(
        self,
        transport: Transport,
        credentials: Credentials,
        player: FlagPlayer,
        fallback: ExperimentFile | None = None,
        interval: timedelta = _INTERVAL,
        device_clock: DeviceClock = time.time,
    ) -> None:
        self._transport = transport
        self._credentials = credentials
        self._player = player
        self._fallback = fallback
        self._interval = interval.total_seconds()
        self._clock = GatewayClock(device_clock)
        self._variants: Mapping[str, str | None] | None = None
        self._tag = ""
        self._problem = ""
        self._failures = 0
        self._wait = 0.0
        self._refreshing = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gamelake-flags", daemon=True)

    @classmethod
    def connect(
        cls, url: str, credentials: Credentials, player: FlagPlayer, fallback: ExperimentFile | None = None
    ) -> Self:
        """Start a thread that asks the gateway at a URL, which need not be reachable yet.

        Raises:
            ValueError: the URL is not the address of an HTTP server.
        """
        flags = cls(HttpTransport(url, _TIMEOUT, _PATH), credentials, player, fallback)
        flags.start()
        return flags

    def start(self) -> None:
        """Start the thread that asks the gateway."""
        self._thread.start()

    def variant_of(self, experiment: str) -> str | None:
        """Return the player's variant at once; None if the player is not in the experiment or the variant is unknown.

        Send an exposure when the player meets the variant.
        """
        variants = self._variants
        if variants is not None:
            return variants.get(experiment)
        if self._fallback is None:
            return None
        try:
            player = self._player
            return self._fallback.variant_of(experiment, player.name, player.attributes, now=self._clock.now())
        except UnicodeEncodeError:
            # Half of a surrogate pair: the gateway refuses such a name too.
            return None

    @property
    def problem(self) -> str:
        """Why the last request failed; "" if it succeeded."""
        return self._problem

    def refresh(self) -> bool:
        """Ask the gateway once and wait for the answer; return True if the variants are up to date."""
        with self._refreshing:
            try:
                self._problem = self._ask()
            except UnreachableError as error:
                self._problem = f"no response: {error}"
            except Exception as error:
                # Only the type: an error's text may contain the player's name.
                self._problem = f"the request can't be sent: {type(error).__name__}"
            self._failures = self._failures + 1 if self._problem else 0
            return not self._problem

    def close(self) -> None:
        """Stop the thread, which may take two seconds; known variants stay."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_SECONDS)
        self._transport.close()

    def _ask(self) -> str:
        """Ask once; return the problem, or ""."""
        context = {**self._player.attributes, "targetingKey": self._player.name}
        body = json.dumps({"context": context}).encode()
        self._wait = 0.0
        for _ in range(2):
            headers = {"content-type": "application/json", **self._credentials.headers(body, self._clock.now())}
            if self._tag:
                headers["if-none-match"] = self._tag
            reply = self._transport.post(body, headers)
            was_wrong = self._clock.correct(reply.headers.get("date"))
            if not (was_wrong and reply.status == HTTPStatus.UNAUTHORIZED):
                break
        self._wait = retry_after_seconds(reply)
        if reply.status == HTTPStatus.NOT_MODIFIED and self._variants is not None:
            return ""
        variants = _variants(reply.body) if reply.status == HTTPStatus.OK else None
        if variants is None:
            return f"the gateway answers with status {reply.status}"
        self._variants, self._tag = variants, reply.headers.get("etag", "")
        return ""

    def _run(self) -> None:
        while not self._closing.is_set():
            before = self._problem
            if not self.refresh() and self._problem != before:
                log.warning("variants are not up to date: %s", self._problem, extra={"event": "flags_wait"})
            self._closing.wait(self._seconds_to_wait())

    def _seconds_to_wait(self) -> float:
        if not self._failures:
            return self._interval
        limit = _BACKOFF.limit_seconds(self._failures, is_denied=True)
        return self._wait + random.uniform(limit / 2, limit)


def _variants(body: bytes) -> Mapping[str, str | None] | None:
    """Return the variant of each experiment, or None for another answer, such as a login page."""
    try:
        flags = json.loads(body)["flags"]
        return {str(each["key"]): str(each["value"]) if each["reason"] == "SPLIT" else None for each in flags}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
