"""A game's side of the gateway: events are handed over in no time, and sent by a thread of the client's own."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Self

from .batches import Figures, Form, Outcome, as_json, delimited
from .buffer import Buffer
from .delivery import Clock, DeviceClock, Exchange, InterruptedDeliveryError
from .options import Options
from .transport import Credentials, HttpTransport, Transport

log = logging.getLogger(__name__)

OnOutcome = Callable[[Outcome], None]
_DEFAULT = Options()
_TO_END = timedelta(seconds=10)


def _ignore(_outcome: Outcome) -> None:
    """Nobody asked."""


class Client:
    """Sends the events of one game, in the order in which they were handed over; safe to use from any thread.

    Args:
        on_outcome: told what became of each batch, on the client's thread: it must not wait for the client.
        device_clock: seconds since 1970; it may be wrong.

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
        self._ends = threading.Event()
        self._clock = Clock(device_clock)
        self._exchange = Exchange(
            transport=transport,
            credentials=credentials,
            options=options,
            clock=self._clock,
            pause=self._ends.wait,
        )
        self._buffer = Buffer(options.buffer, options.batch, self._exchange.figures)
        self._thread = threading.Thread(target=self._run, name="gamelake-sdk", daemon=True)
        self._thread.start()

    @classmethod
    def connect(
        cls, url: str, credentials: Credentials, options: Options = _DEFAULT, on_outcome: OnOutcome = _ignore
    ) -> Self:
        """A client of the gateway at an address, which need not be there yet.

        Raises:
            BufferFileError: the buffer's file can't be used.
        """
        return cls(HttpTransport(url, options.patience), credentials, options, on_outcome)

    def send(self, event: bytes | Mapping[str, object]) -> int:
        """Take an event: a Protobuf message as it is written, or a mapping with the contract's names.

        A mapping without `event_id` gets one. Gives a ticket by which outcomes name the event.

        Raises:
            BufferFullError: there is no room for it.
            BufferFileError: the buffer's file could not be written.
            ClosedError: the client was closed.
            TypeError: a mapping holds what JSON has no word for.
            ValueError: the same.
        """
        if isinstance(event, bytes):
            return self._buffer.put(Form.PROTOBUF, 1, delimited(event))
        return self._buffer.put(Form.JSON, 1, as_json(event))

    def send_packed(self, payload: bytes, count: int) -> int:
        """Take Protobuf messages that stand one behind the other already, each behind its length.

        Raises:
            BufferFullError: there is no room for them.
            BufferFileError: the buffer's file could not be written.
            ClosedError: the client was closed.
        """
        return self._buffer.put(Form.PROTOBUF, count, payload)

    def now(self) -> float:
        """Seconds since 1970 by the gateway's clock as far as it is known: what an `event_time` should say."""
        return self._clock.now()

    def await_room(self, size: int, timeout: timedelta) -> bool:
        """Wait until the buffer has room for so many bytes; says whether it has."""
        return self._buffer.await_room(size, timeout.total_seconds())

    def flush(self, timeout: timedelta) -> bool:
        """Send at once what was handed over before, and wait until it is settled; says whether it is."""
        return self._buffer.await_settled(timeout.total_seconds())

    def close(self, timeout: timedelta = _TO_END) -> bool:
        """Flush, then end; says whether all was settled. What was not stays in the buffer's file, if there is one."""
        latest = time.monotonic() + timeout.total_seconds()
        settled = self.flush(timeout)
        self._ends.set()
        self._buffer.close()
        self._thread.join(max(0.0, latest - time.monotonic()))
        self._transport.close()
        return settled

    @property
    def waiting(self) -> int:
        """Events that are not settled."""
        return self._buffer.events

    def figures(self) -> Figures:
        """What the client has done so far."""
        return replace(self._exchange.figures)

    def __enter__(self) -> Self:
        """Nothing to do: a client runs from its making."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _run(self) -> None:
        try:
            while parcels := self._buffer.take():
                for outcome in self._exchange.deliver(parcels):
                    self._tell(outcome)
                self._buffer.settle()
        except InterruptedDeliveryError:
            log.info("the client ends before its last batch is settled")

    def _tell(self, outcome: Outcome) -> None:
        if outcome.refusal is not None:
            log.warning("the gateway refused a batch: %d %s", outcome.refusal.status, outcome.refusal.text)
        try:
            self._on_outcome(outcome)
        except Exception:
            # The events are settled whatever the caller makes of it.
            log.exception("the game's own code failed at an outcome")
