"""Writes files of event identities, and merges small ones, so that a batch reads few files however long the window is.

A batch's manifest names a merged file with the files that it replaces. The replaced files count until the manifest is
written. They are deleted later, since tasks may still read them.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, takewhile

import msgspec

from gamelake.layers.known_events import EVENT_BYTES, Events
from gamelake.ledger.manifests import EventsFile, EventsSection
from gamelake.objects.store import Store

# The partition number of events in the identity files of the stream that reads files, and of replays of such events.
EVENTS_OF_FILES = 2
# A file with at least this many identities (1 MiB) is not merged.
_LARGE = 65_536
# The limits of one batch's merge: 16 MiB, and requests that take about a second on a distant store.
_MOST_EVENTS, _MOST_FILES = 1_048_576, 1_024
# A file expires as a whole, so a merged file has the identities of a short part of the window.
_PARTS_OF_WINDOW = 16

# The identities of one Kafka partition, and the newest timestamp among them (seconds since 1970).
Section = tuple[Events, int]


def write_identities(store: Store, folder: str, batch_id: int, sections: Mapping[int, Section]) -> EventsFile:
    """Write the identities of a batch as one file; it counts once a manifest names it.

    Args:
        store: the lakehouse.
        folder: of the stream's identity files.
        batch_id: of the batch, which is in the file's name.
        sections: the identities by Kafka partition.
    """
    content, placed = bytearray(), []
    for partition, (events, newest) in sorted(sections.items()):
        placed.append(EventsSection(partition=partition, start=len(content), events=len(events), newest=newest))
        content += events.encode()
    path = f"{folder}/{batch_id:012d}-{uuid.uuid4()}"
    store.put(path, bytes(content))
    return EventsFile(path=path, sections=tuple(placed))


def is_small(file: EventsFile) -> bool:
    """Return True if a file may be merged; a merged file may be merged again while it is small."""
    return _events(file) < _LARGE


def files_to_merge(files: Iterable[EventsFile], window_seconds: int, most: int) -> list[EventsFile]:
    """Choose the files that a batch merges: those in the part of the window that has the most small files.

    Args:
        files: of the window.
        window_seconds: how long identities are kept.
        most: the number of small files up to which none is merged.

    Returns:
        The files in the order of their paths; empty if the window has few small files.
    """
    small = [file for file in files if is_small(file)]
    if len(small) <= most:
        return []
    span = max(window_seconds // _PARTS_OF_WINDOW, 1)
    parts: defaultdict[int, list[EventsFile]] = defaultdict(list)
    for file in small:
        parts[newest_of(file) // span].append(file)
    fullest = max(parts.values(), key=len)
    fullest = sorted(fullest, key=lambda file: file.path)[:_MOST_FILES]
    within = takewhile(_MOST_EVENTS.__ge__, accumulate(map(_events, fullest)))
    return fullest[: len(list(within))]


def merge(store: Store, folder: str, batch_id: int, files: Sequence[EventsFile], now: int) -> EventsFile | None:
    """Write the identities of some files as one file; return None if fewer than two files can be read.

    A missing or truncated file is not replaced, so each task that needs it continues to report it.

    Args:
        store: the lakehouse.
        folder: of the stream's identity files.
        batch_id: of the batch that merges.
        files: to replace.
        now: the time of the merge in seconds since 1970.
    """
    replaced, sections = [], dict[int, list[Section]]()
    for file, content in zip(files, store.get_all(file.path for file in files), strict=True):
        if content is None or len(content) < _events(file) * EVENT_BYTES:
            continue
        replaced.append(file.path)
        for each in file.sections:
            part = content[each.start : each.start + each.events * EVENT_BYTES]
            sections.setdefault(each.partition, []).append((Events.decode(part), each.newest))
    if len(replaced) < 2:  # noqa: PLR2004 # one file is as good
        return None
    joined = {
        partition: (Events.joined([events for events, _ in parts]), max(newest for _, newest in parts))
        for partition, parts in sections.items()
    }
    merged = write_identities(store, folder, batch_id, joined)
    return msgspec.structs.replace(merged, replaces=tuple(replaced), merged_at=now)


def newest_of(file: EventsFile) -> int:
    """Return the newest timestamp in a file, in seconds since 1970; 0 for a file without events."""
    return max((section.newest for section in file.sections), default=0)


def _events(file: EventsFile) -> int:
    return sum(section.events for section in file.sections)
