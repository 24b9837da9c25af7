"""Kafka and the registry together, started at the same time."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from tools.embedded.kafka import EmbeddedKafka
from tools.embedded.registry import EmbeddedRegistry

_NONE: Mapping[str, str | int] = MappingProxyType({})


class EmbeddedServices:
    """Both services under one directory, for as long as the `with` block lasts.

    Args:
        kafka: settings of the broker, see `EmbeddedKafka`.
    """

    def __init__(self, directory: Path, kafka: Mapping[str, str | int] = _NONE) -> None:
        self.kafka = EmbeddedKafka(directory / "kafka", kafka)
        self.registry = EmbeddedRegistry(directory / "registry")
        self._started = ExitStack()

    def start(self) -> None:
        """Start both and return when both are healthy; stop both if one fails."""
        with ExitStack() as stack:
            for service in (self.registry, self.kafka):
                stack.callback(service.stop)
                service.launch()
            self.kafka.wait_until_healthy()
            self.registry.wait_until_healthy()
            self._started = stack.pop_all()

    def stop(self) -> None:
        """Stop both with SIGTERM."""
        self._started.close()

    def raise_if_ended(self) -> None:
        """Check that both run.

        Raises:
            ServiceEndedError: one of them has ended.
        """
        self.kafka.process.raise_if_ended()
        self.registry.process.raise_if_ended()

    def __enter__(self) -> Self:
        """Start both."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop both."""
        self.stop()
