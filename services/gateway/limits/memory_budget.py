"""One budget of memory for all requests of a process, from their bodies' first bytes until Kafka has their events.

A request reserves memory before it takes it: for the body before it is read, for its content before it is
decompressed, for its events before they are parsed. The reservation shrinks when less is needed.

The games share the budget by dynamic thresholds (Choudhury and Hahne, 1998): a game may hold as much as is then left.
One game alone gets half of the budget, two get a third each, and something is always left for another one.
"""

from collections import Counter
from types import TracebackType
from typing import Self

from services.gateway.errors import OverMemoryError

# Headers, the request's task and what the server has of it.
REQUEST_BYTES = 16 * 1024
# A record in the Kafka client's queue, besides its key and value.
RECORD_BYTES = 256

# What the events of a body take in memory until their records are ready: personal data is there as a part of the event,
# as values, as a message for the vault, and encrypted. A JSON value may take a hundred times its length: `{}` does.
VALUES_PER_EVENT = 40
_TEXT_COPIES, _VALUE_BYTES, _MESSAGE_COPIES = 4, 96, 6


def json_bytes(content: int, values: int) -> int:
    """Return what events in JSON take, by the size of the body and the number of values."""
    return _TEXT_COPIES * content + _VALUE_BYTES * values


def protobuf_bytes(content: int) -> int:
    """Return what events in Protobuf take, by the size of the body."""
    return _MESSAGE_COPIES * content


class MemoryBudget:
    """The memory that the requests of one process may take, in bytes; for one event loop."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.reserved = 0
        self._by_game: Counter[str] = Counter()

    def reserve(self, game: str, size: int) -> "Reservation":
        """Reserve memory for one request of a game.

        Raises:
            OverMemoryError: the game would hold more memory than is then left.
        """
        reservation = Reservation(self, game)
        reservation.resize(size)
        return reservation

    def room(self, game: str) -> int:
        """Return how much more a game may reserve."""
        return (self.total - self.reserved - self._by_game[game]) // 2

    def change(self, game: str, size: int) -> None:
        """Add to what a game holds."""
        self.reserved += size
        self._by_game[game] += size


class Reservation:
    """The memory of one request, which returns to the budget when the `with` block ends."""

    def __init__(self, budget: MemoryBudget, game: str) -> None:
        self._budget = budget
        self._game = game
        self._size = 0

    def __enter__(self) -> Self:
        """Return the reservation."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return the memory to the budget."""
        self.resize(0)

    @property
    def largest(self) -> int:
        """The greatest size that this reservation may have now."""
        return self._size + self._budget.room(self._game)

    def resize(self, size: int) -> None:
        """Change the size of the reservation.

        Raises:
            OverMemoryError: the game would hold more memory than is then left; the size is unchanged.
        """
        if size > self._size and size > self.largest:
            raise OverMemoryError
        self._budget.change(self._game, size - self._size)
        self._size = size
