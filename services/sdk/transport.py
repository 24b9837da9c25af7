"""HTTP transport and the signature of requests.

    signature = hex(HMAC-SHA256(secret, timestamp + "." + body))

Source: RFC 2104 (HMAC); the gateway's OpenAPI document.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

import urllib3


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key of one game, and its secret."""

    key: str
    secret: str = field(repr=False)

    def headers(self, body: bytes, now: float) -> Mapping[str, str]:
        """Sign a body at a moment, in seconds since 1970 by the gateway's clock."""
        timestamp = str(int(now))
        signature = hmac.digest(self.secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()
        return {
            "gamelake-key": self.key,
            "gamelake-timestamp": timestamp,
            "gamelake-signature": signature,
        }


_PATH = "/v1/events"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class UnreachableError(Exception):
    """No answer came: whether the gateway has the events is not known."""


class Transport(Protocol):
    """Brings bodies to the gateway; asked by one thread."""

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send a body, and wait for the answer.

        Raises:
            UnreachableError: there was none.
        """

    def close(self) -> None:
        """Let go of connections."""


class HttpTransport:
    """One kept-alive connection to a gateway, made when it is needed.

    Args:
        url: where it is, without a path: `https://events.example.com`.
        patience: for one request.
    """

    def __init__(self, url: str, patience: timedelta) -> None:
        self._url = url.rstrip("/") + _PATH
        timeout = urllib3.Timeout(connect=patience.total_seconds(), read=patience.total_seconds())
        # Retries are the client's: it knows what may be sent again, and when.
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=1, timeout=timeout, retries=False)

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send a body, and wait for the answer.

        Raises:
            UnreachableError: there was none.
        """
        try:
            answer = self._pool.request("POST", self._url, body=body, headers=dict(headers), redirect=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            # Only the kind: the text of some errors has the address with whatever stands in it.
            raise UnreachableError(type(error).__name__) from error
        return Reply(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.data)

    def close(self) -> None:
        """Let go of the connection."""
        self._pool.clear()
