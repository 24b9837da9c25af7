"""Games that send continuously, and the ids of their accepted events."""

import http.client
import threading
from collections import Counter
from types import TracebackType
from typing import Self

from tests.embedded.gateway import Gateway, body_of, events
from tests.support.eventually import eventually

BATCH = 20
_END_SECONDS = 90
_PAUSE_SECONDS = 0.02


class Traffic:
    """Sends small batches, each repeatedly until it is accepted; status 0 means no response."""

    def __init__(self, gateway: Gateway, senders: int = 1) -> None:
        self._gateway = gateway
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(senders)]
        self.accepted: list[str] = []
        self.attempts: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()

    def __enter__(self) -> Self:
        """Start sending."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop after the last responses."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_END_SECONDS)
        assert not any(thread.is_alive() for thread in self._threads)

    def await_accepted(self, more: int) -> None:
        """Wait until `more` further events are accepted."""
        target = len(self.accepted) + more
        eventually(lambda: len(self.accepted) >= target, timeout=60)

    def _run(self) -> None:
        batch = events(BATCH)
        while not self._stop.is_set():
            ids = [str(each["event_id"]) for each in batch]
            status = self._status_of(body_of(batch))
            with self._lock:
                self.statuses[status] += 1
                self.attempts.update(ids)
            if status == 200:
                self.accepted += ids
                batch = events(BATCH)
            elif status == 0:
                self._stop.wait(_PAUSE_SECONDS)

    def _status_of(self, body: bytes) -> int:
        try:
            return self._gateway.send(body).status
        except (OSError, http.client.HTTPException):
            return 0
