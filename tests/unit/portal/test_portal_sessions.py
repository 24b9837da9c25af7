"""Sessions of browsers: each token opens one, both expire, and their number is bounded."""

import pytest

from services.portal.sessions import SESSION_SECONDS, TOKEN_SECONDS, BrowserSessions, session_cookie, session_of


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> BrowserSessions:
    return BrowserSessions(clock)


def test_a_token_opens_one_session(sessions: BrowserSessions) -> None:
    token = sessions.make_token()

    session = sessions.open(token)

    assert session is not None
    assert sessions.is_open(session)
    assert sessions.open(token) is None


@pytest.mark.parametrize("wrong", ["", "x", "\u20ac"])
def test_a_wrong_token_or_session_opens_nothing(sessions: BrowserSessions, wrong: str) -> None:
    sessions.make_token()

    assert sessions.open(wrong) is None
    assert not sessions.is_open(wrong)


def test_tokens_and_sessions_expire(sessions: BrowserSessions, clock: Clock) -> None:
    early, late = sessions.make_token(), sessions.make_token()
    session = sessions.open(early) or ""

    clock.now = TOKEN_SECONDS
    assert sessions.open(late) is None
    assert sessions.is_open(session)

    clock.now = SESSION_SECONDS
    assert not sessions.is_open(session)


def test_the_oldest_token_ends_if_there_are_too_many(sessions: BrowserSessions) -> None:
    tokens = [sessions.make_token() for _ in range(101)]

    assert [sessions.open(token) is not None for token in (tokens[0], tokens[1], tokens[-1])] == [False, True, True]


@pytest.mark.parametrize(
    ("host", "name"),
    [("127.0.0.1:8089", "gamelake-portal-8089"), ("localhost", "gamelake-portal-80"), ("", "gamelake-portal-80")],
)
def test_a_cookie_belongs_to_the_port_that_has_set_it(host: str, name: str) -> None:
    cookie = session_cookie({"host": host}, "abc")

    assert cookie.startswith(f"{name}=abc; ")
    assert {"HttpOnly", "SameSite=Lax"} <= set(cookie.split("; "))
    assert session_of({"host": host, "cookie": f"other=1; {name}=abc"}) == "abc"
    assert session_of({"host": host, "cookie": "gamelake-portal-1=abc"}) == ""


def test_a_cookie_that_came_by_https_goes_by_https_alone() -> None:
    host = {"host": "gamelake.example.com"}

    assert "Secure" in session_cookie({**host, "x-forwarded-proto": "https"}, "abc").split("; ")
    assert "Secure" not in session_cookie(host, "abc").split("; ")


@pytest.mark.parametrize("cookie", ["", "=", "; ;", "a b c=\x00", "gamelake-portal-80"])
def test_a_malformed_cookie_is_no_session(cookie: str) -> None:
    assert session_of({"host": "localhost", "cookie": cookie}) == ""
