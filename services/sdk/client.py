"""The client: events are buffered at once, and sent by a thread of the client's own."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Self

from .batches import BatchOutcome, ClientStats, EventFormat, as_json, delimited
from .buffer import Buffer
from .delivery import Delivery, DeviceClock, GatewayClock, InterruptedDeliveryError
from .options import Options
from .transport import Credentials, HttpTransport, Transport

log = logging.getLogger(__name__)

OnOutcome = Callable[[BatchOutcome], None]
_DEFAULT = Options()
_CLOSE_TIMEOUT = timedelta(seconds=10)


def _ignore(_outcome: BatchOutcome) -> None:
    """The default for `on_outcome`."""


class Client:
    """Sends the events of one game, in the order of the calls of `send`; thread-safe.

    Args:
        on_outcome: called with the outcome of each batch, on the client's thread: it must not wait for the client.
        device_clock: seconds since 1970; it may be wrong.

    What can't pass for now (no response, a key that the gateway does not take, a wrong address) waits in the buffer and
    is sent again; `stats().problem` says why.

    Raises:
        BufferFileError: the buffer's file can't be used.
    """

    def __init__(
        self,
        transport: Transport,
        credentials: Credentials,
        options: Options = _DEFAULT,
        on_outcome: OnOutcome = _ignore,
        device_clock: DeviceClock = time.time,
    ) -> None:
        self._transport = transport
        self._on_outcome = on_outcome
        self._closing = threading.Event()
        self._backoff = options.backoff
        self._clock = GatewayClock(device_clock)
        self._delivery = Delivery(
            transport=transport,
            credentials=credentials,
            options=options,
            clock=self._clock,
            pause=self._pause,
        )
        self._buffer = Buffer(options.buffer, options.batch, self._delivery.stats)
        self._thread = threading.Thread(target=self._run, name="gamelake-sdk", daemon=True)
        self._thread.start()

    @classmethod
    def connect(
        cls, url: str, credentials: Credentials, options: Options = _DEFAULT, on_outcome: OnOutcome = _ignore
    ) -> Self:
        """Create a client of the gateway at a URL; the gateway need not be reachable yet.

        Raises:
            BufferFileError: the buffer's file can't be used.
            ValueError: the URL or the timeout can't be one.
        """
        return cls(HttpTransport(url, options.timeout), credentials, options, on_outcome)

    def send(self, event: bytes | Mapping[str, object]) -> int:
        """Buffer an event: a serialized Protobuf message, or a mapping with the contract's field names.

        A mapping without `event_id` gets one. Gives a ticket by which outcomes identify the event.

        Raises:
            BufferFullError: the buffer is full.
            BufferFileError: the buffer's file could not be written.
            ClosedError: the client is closed.
            TypeError: a value of a mapping has no JSON representation.
            ValueError: the same.
        """
        if isinstance(event, bytes):
            return self._buffer.put(EventFormat.PROTOBUF, 1, delimited(event))
        return self._buffer.put(EventFormat.JSON, 1, as_json(event))

    def send_delimited(self, payload: bytes, count: int) -> int:
        """Buffer length-delimited Protobuf messages, `count` of them.

        Raises:
            BufferFullError: the buffer is full.
            BufferFileError: the buffer's file could not be written.
            ClosedError: the client is closed.
        """
        return self._buffer.put(EventFormat.PROTOBUF, count, payload)

    def now(self) -> float:
        """Return the seconds since 1970 by the gateway's clock as far as it is known, for `event_time`."""
        return self._clock.now()

    def wait_for_space(self, size: int, timeout: timedelta) -> bool:
        """Wait until the buffer has space for `size` bytes; False after the timeout."""
        return self._buffer.wait_for_space(size, timeout.total_seconds())

    def flush(self, timeout: timedelta) -> bool:
        """Send all buffered events at once and wait until they are settled; False after the timeout."""
        return self._buffer.flush(timeout.total_seconds())

    def close(self, timeout: timedelta = _CLOSE_TIMEOUT) -> bool:
        """Flush, then stop.

        Return True if all events are settled. Others stay in the buffer's file, if there is one.
        """
        latest = time.monotonic() + timeout.total_seconds()
        settled = self.flush(timeout)
        self._closing.set()
        self._buffer.close()
        self._thread.join(max(0.0, latest - time.monotonic()))
        self._transport.close()
        return settled

    @property
    def pending(self) -> int:
        """Events that are not settled."""
        return self._buffer.events

    def stats(self) -> ClientStats:
        """Return the counts since the client was made."""
        return replace(self._delivery.stats)

    def __enter__(self) -> Self:
        """Nothing to do: a client runs from its construction."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                while batch := self._buffer.take():
                    for outcome in self._delivery.deliver(batch):
                        self._report(outcome)
                    self._buffer.settle()
                    failures = 0
            except InterruptedDeliveryError:
                log.info(
                    "closed before the last batch was settled; it stays in the buffer's file, if there is one",
                    extra={"event": "client_closed_early"},
                )
            except Exception as error:
                # Without the thread `send` would still accept events that are never sent. The batch comes again.
                failures += 1
                self._delivery.stats.problem = f"the client failed: {type(error).__name__}"
                log.exception("sending failed; the events are sent again", extra={"event": "sending_failed"})
                self._pause(self._backoff.limit_seconds(failures, is_denied=True))

    def _pause(self, seconds: float) -> bool:
        return self._closing.wait(min(seconds, threading.TIMEOUT_MAX))

    def _report(self, outcome: BatchOutcome) -> None:
        if outcome.refusal is not None:
            log.warning(
                "the gateway refused a batch: %d %s",
                outcome.refusal.status,
                outcome.refusal.text,
                extra={"event": "batch_refused"},
            )
        try:
            self._on_outcome(outcome)
        except BaseException:
            # Also `sys.exit()`, which would end the thread without a word. The events are settled in any case.
            log.exception("on_outcome failed; the batch counts as settled", extra={"event": "on_outcome_failed"})
