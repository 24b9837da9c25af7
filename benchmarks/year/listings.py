"""Counts the objects that a process asks the store to list."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import obstore


@dataclass(slots=True)
class Listings:
    """The listings of a process so far, in requests of the store's client and in objects."""

    requests: int = 0
    objects: int = 0


@contextmanager
def counted_listings() -> Iterator[Listings]:
    """Count the listings of this process during the block.

    delta-rs lists by a client of its own, which is not counted: a log from its last Delta checkpoint on, which the
    platform writes every 50 commits.
    """
    found = Listings()
    list_objects, list_folders = obstore.list, obstore.list_with_delimiter

    def counted(*arguments: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401 # as obstore has them
        found.requests += 1
        listed: Any = list_objects(*arguments, **options)
        for batch in listed:
            found.objects += len(batch)
            yield batch

    def counted_folders(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 # as obstore has them
        found.requests += 1
        listed: Any = list_folders(*arguments, **options)
        found.objects += len(listed["objects"]) + len(listed["common_prefixes"])
        return listed

    obstore.list, obstore.list_with_delimiter = counted, counted_folders  # type: ignore[assignment]
    try:
        yield found
    finally:
        obstore.list, obstore.list_with_delimiter = list_objects, list_folders
