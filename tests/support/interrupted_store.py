"""A store whose client stalls before one of its operations, while something else happens."""

from collections.abc import Callable

from gamelake.objects.store import Location, Store


class InterruptedStore(Store):
    """Runs `meanwhile` once, before its n-th operation after `interrupt`; `stalled` names that operation."""

    def __init__(self, location: Location, meanwhile: Callable[[], None]) -> None:
        super().__init__(location)
        self._left = 0
        self._meanwhile = meanwhile
        self.stalled = ""

    def interrupt(self, at: int) -> None:
        """Stall before the `at`-th operation from now on."""
        self._left = at

    def _count(self, operation: str) -> None:
        self._left -= 1
        if self._left == 0:
            self.stalled = operation
            self._meanwhile()

    def put_new(self, path: str, content: bytes) -> bool:
        self._count("put_new")
        return super().put_new(path, content)

    def put(self, path: str, content: bytes) -> None:
        self._count("put")
        super().put(path, content)

    def get(self, path: str) -> bytes | None:
        """Count, then read."""
        self._count("get")
        return super().get(path)

    def paths(self, prefix: str) -> list[str]:
        self._count("paths")
        return super().paths(prefix)

    def delete(self, path: str) -> None:
        self._count("delete")
        super().delete(path)
