"""Objects shared out among tasks: each gets about as many bytes as the others."""

import heapq
from collections.abc import Mapping, Sequence

from gamelake.files.plan import Letter, NamedObject, Parcel
from gamelake.silver.known_events import Events

_BYTES_PER_PARCEL = 32 * 2**20
# So little is done by one task: compressed lines of JSON take it about a second.
_BYTES_ALONE = 4 * 2**20
# What an object costs besides its bytes, in bytes: a trip to the store.
_PER_OBJECT = 64 * 2**10


def parcels(
    objects: Sequence[NamedObject], letters: Sequence[Letter], cores: int, claimed: Mapping[int, Events]
) -> list[Parcel]:
    """The parcels of a batch; the same objects are always shared out in the same way."""
    count = _count(objects, cores)
    heap = [(0, number) for number in range(count)]
    shares: list[list[NamedObject]] = [[] for _ in range(count)]
    for each in sorted(objects, key=lambda one: (-one.size, one.place.partition, one.place.first_offset)):
        load, number = heapq.heappop(heap)
        shares[number].append(each)
        heapq.heappush(heap, (load + each.size + _PER_OBJECT, number))
    return [
        Parcel(
            number=number,
            objects=tuple(share),
            letters=tuple(letters) if number == 0 else (),
            claimed=claimed[number].pack() if number in claimed else b"",
        )
        for number, share in enumerate(shares)
    ]


def _count(objects: Sequence[NamedObject], cores: int) -> int:
    """One task for little, all cores for much, and no task that would take long alone."""
    load = sum(each.size + _PER_OBJECT for each in objects)
    wanted = -(-load // _BYTES_PER_PARCEL)
    if load > _BYTES_ALONE:
        wanted = -(-max(wanted, cores) // cores) * cores
    return max(1, min(wanted, len(objects)))
