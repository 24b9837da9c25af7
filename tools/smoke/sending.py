"""Hands one event to the gateway, as a game does."""

import time
from datetime import timedelta
from http import HTTPStatus

from services.sdk import Credentials, HttpTransport, Reply, UnreachableError
from tools.smoke.errors import NotYetError, StepFailedError
from tools.smoke.event import SmokeEvent
from tools.smoke.journey import NEXT_COMMANDS, Step

_JSON = "application/json"
_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class Gateway:
    """The gateway as one game sees it."""

    def __init__(self, url: str, credentials: Credentials, patience: timedelta) -> None:
        self._url = url
        self._credentials = credentials
        self._transport = HttpTransport(url, patience)

    def send(self, event: SmokeEvent) -> float:
        """Send the event; gives the seconds from the request to the answer that Kafka has it.

        Raises:
            NotYetError: there was no answer, or one that says to try again.
            StepFailedError: it was refused.
        """
        started = time.perf_counter()
        headers = {"content-type": _JSON, **self._credentials.headers(event.body, time.time())}
        try:
            reply = self._transport.post(event.body, headers)
        except UnreachableError as error:
            raise NotYetError(f"{self._url} does not answer ({error})") from error
        if reply.status in _AGAIN:
            raise NotYetError(f"the gateway answers {reply.status}, {_text_of(reply)}")
        if reply.status != HTTPStatus.OK or b'"rejected":[]' not in reply.body:
            problem = f"the gateway answers {reply.status}, {_text_of(reply)}"
            raise StepFailedError(Step.ACKNOWLEDGED, problem, NEXT_COMMANDS[Step.ACKNOWLEDGED])
        return time.perf_counter() - started


def _text_of(reply: Reply) -> str:
    return reply.body.decode(errors="replace")
