"""Sessions of browsers: an address that is valid once opens the portal without a client certificate.

Only a holder of the operator's certificate can make an address, so a session has the rights of that certificate. Tokens
and sessions are kept in memory, as hashes: a restart of the portal ends them all.
"""

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from urllib.parse import urlsplit

TOKEN_SECONDS = 600.0
SESSION_SECONDS = 12 * 3600.0
# The oldest ones end when there are more.
_MOST = 100


@dataclass(slots=True)
class _Secrets:
    """Secrets by their hash, with the moment at which each expires; the oldest come first."""

    seconds: float
    clock: Callable[[], float]
    _expires: OrderedDict[bytes, float] = field(default_factory=OrderedDict)

    def make(self) -> str:
        made = secrets.token_urlsafe(32)
        self._expires[_hash(made)] = self.clock() + self.seconds
        while len(self._expires) > _MOST:
            self._expires.popitem(last=False)
        return made

    def has(self, secret: str) -> bool:
        return self._expires.get(_hash(secret), 0.0) > self.clock()

    def take(self, secret: str) -> bool:
        return self._expires.pop(_hash(secret), 0.0) > self.clock()


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


class BrowserSessions:
    """The sessions of one portal. All methods may be called from several threads.

    Example:
        >>> sessions = BrowserSessions()
        >>> token = sessions.make_token()
        >>> session = sessions.open(token)
        >>> sessions.is_open(session), sessions.open(token)
        (True, None)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = Lock()
        self._tokens = _Secrets(TOKEN_SECONDS, clock)
        self._sessions = _Secrets(SESSION_SECONDS, clock)

    def make_token(self) -> str:
        """Return a token that opens one session within ten minutes."""
        with self._lock:
            return self._tokens.make()

    def open(self, token: str) -> str | None:
        """Open a session; return None if the token is wrong, used or expired."""
        with self._lock:
            return self._sessions.make() if self._tokens.take(token) else None

    def is_open(self, session: str) -> bool:
        """Return True if the session was opened in the last twelve hours."""
        with self._lock:
            return self._sessions.has(session)


def session_of(headers: Mapping[str, str]) -> str:
    """Return the session in a request's cookie; empty without one.

    Args:
        headers: by names in lower case.
    """
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(headers))
    except CookieError:
        return ""
    return cookie.value if cookie is not None else ""


def session_cookie(headers: Mapping[str, str], session: str) -> str:
    """Return the value of the header `set-cookie` that keeps a session.

    Forms of other sites can't send it (`Lax`), and no script can read it. A link on another page may open the portal.

    Args:
        headers: of the request, by names in lower case.
        session: as returned by `BrowserSessions.open`.
    """
    cookie = f"{_cookie_name(headers)}={session}; Path=/; Max-Age={SESSION_SECONDS:.0f}; HttpOnly; SameSite=Lax"
    # A proxy that ends TLS sends this header.
    return f"{cookie}; Secure" if headers.get("x-forwarded-proto") == "https" else cookie


def _cookie_name(headers: Mapping[str, str]) -> str:
    """Return a name with the port: a browser sends the cookies of a host to all of its ports."""
    port = urlsplit("//" + headers.get("host", "")).port or 80
    return f"gamelake-portal-{port}"
