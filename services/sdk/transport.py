"""HTTP transport and the signature of requests.

    signature = hex(HMAC-SHA256(secret, timestamp + "." + body))

Source: RFC 2104 (HMAC); the gateway's OpenAPI document.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

import urllib3

_PATH = "/v1/events"
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key of one game, and its secret.

    Raises:
        ValueError: no gateway can have such a key id or secret.
    """

    key: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        """Check what becomes a header, so that no request can fail by it."""
        if _KEY.fullmatch(self.key) is None:
            raise ValueError("a key's id has 1 to 64 letters, digits, '_', '.' and '-'")
        if not self.secret or not self.secret.isprintable() or self.secret != self.secret.strip():
            raise ValueError("a secret has printable characters, and no space around them")

    def headers(self, body: bytes, now: float) -> Mapping[str, str]:
        """Return the headers that sign a body; `now` is in seconds since 1970 by the gateway's clock."""
        timestamp = str(int(now))
        signature = hmac.digest(self.secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()
        return {
            "gamelake-key": self.key,
            "gamelake-timestamp": timestamp,
            "gamelake-signature": signature,
        }


def _is_address(url: str) -> bool:
    try:
        parts = urllib3.util.parse_url(url)
    except urllib3.exceptions.LocationParseError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.host) and url.isprintable()


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class UnreachableError(Exception):
    """No response: it is not known whether the gateway has the events."""


class Transport(Protocol):
    """Sends request bodies to the gateway; used by one thread."""

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send a body and wait for the response.

        Raises:
            UnreachableError: there was none.
        """

    def close(self) -> None:
        """Close the connections."""


class HttpTransport:
    """One kept-alive connection to a gateway, made when it is needed.

    Args:
        url: the gateway's address, without a path: `https://events.example.com`.
        timeout: of one request.
        path: the path of each request.

    Raises:
        ValueError: `url` is not the address of an HTTP server, or `timeout` is not a time that a request can take.
    """

    def __init__(self, url: str, timeout: timedelta, path: str = _PATH) -> None:
        if not _is_address(url):
            raise ValueError("a gateway's address looks like https://events.example.com")
        self._url = url.rstrip("/") + path
        seconds = timeout.total_seconds()
        # Retries are the client's: it knows what may be sent again, and when.
        self._pool = urllib3.PoolManager(
            num_pools=1, maxsize=1, timeout=urllib3.Timeout(connect=seconds, read=seconds), retries=False
        )

    def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send a body and wait for the response.

        Raises:
            UnreachableError: there was none.
        """
        try:
            response = self._pool.request("POST", self._url, body=body, headers=dict(headers), redirect=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            # The type alone: the text of some errors contains the address, which may have credentials in it.
            raise UnreachableError(type(error).__name__) from error
        return Reply(response.status, {name.lower(): value for name, value in response.headers.items()}, response.data)

    def close(self) -> None:
        """Close the connection."""
        self._pool.clear()
