"""Chooses the objects that a batch reads: each content once, however many notifications name it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import Events, Flags, repeated
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.storage.store import Store
from gamelake.streaming.duplicates import worker_memory
from gamelake.streaming.files.coordinates import MOST_OBJECTS, ObjectPosition
from gamelake.streaming.files.notifications import (
    NotificationError,
    ObjectEvent,
    ObjectEventType,
    ObjectName,
    object_events,
)
from gamelake.streaming.files.plan import NamedObject, RejectedNotification
from gamelake.streaming.files.silver_ids import KEYS, OBJECTS
from gamelake.streaming.plan import DedupPlan

_NO_OBJECT = ObjectName(bucket="", key="", version="", etag="")
_MICROSECONDS = 1_000_000


@dataclass(slots=True)
class ChosenObjects:
    """What the notifications of a batch lead to.

    Attributes:
        objects: to be read.
        rejected: notifications that become dead letters.
        ignored: how many objects are not read, by reason.
        taken: the identities of the contents of the objects; `keys`: those of their keys.
    """

    objects: list[NamedObject] = field(default_factory=list)
    rejected: list[RejectedNotification] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    taken: Events | None = None
    keys: Events | None = None


class OverwritePolicy(StrEnum):
    """What to do with an object whose key had another content before: read it, or write it to the dead letters."""

    READ = "read"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses objects of one bucket under one prefix."""

    bucket: str
    prefix: str
    overwritten: OverwritePolicy
    store: Store

    def choose(self, notifications: pa.Table, dedup: DedupPlan) -> ChosenObjects:
        """Choose objects from notifications in their order.

        Args:
            notifications: the columns partition, offset, timestamp (microseconds) and value (binary).
            dedup: the identities of objects that were read before.
        """
        chosen = ChosenObjects()
        named: list[NamedObject] = []
        columns = [notifications[name].to_pylist() for name in ("partition", "offset", "value")]
        moments = notifications["timestamp"].cast(pa.int64()).to_pylist()
        for partition, offset, value, moment in zip(*columns, moments, strict=True):
            position = ObjectPosition(partition=partition, offset=offset, index=0, microseconds=moment)
            self._read(position, value, chosen, named)
        self._without_known(named, chosen, dedup)
        return chosen

    def _read(
        self, position: ObjectPosition, value: bytes | None, chosen: ChosenObjects, named: list[NamedObject]
    ) -> None:
        try:
            found = _parse(value)
        except NotificationError as error:
            chosen.rejected.append(
                _rejected(position, _NO_OBJECT, value, DeadLetterReason.BAD_NOTIFICATION, str(error))
            )
            return
        if not found:
            chosen.ignored["no_object"] += 1
        for index, event in enumerate(found):
            at = ObjectPosition(
                partition=position.partition, offset=position.offset, index=index, microseconds=position.microseconds
            )
            self._sort(at, event, value or b"", chosen, named)

    def _sort(
        self,
        position: ObjectPosition,
        event: ObjectEvent,
        value: bytes,
        chosen: ChosenObjects,
        named: list[NamedObject],
    ) -> None:
        name = event.name
        if event.event_type is ObjectEventType.REMOVED:
            chosen.ignored["removed"] += 1
        elif name.bucket != self.bucket:
            detail = f"the bucket is {name.bucket}; this job reads only {self.bucket}"
            chosen.rejected.append(_rejected(position, name, value, DeadLetterReason.FOREIGN_OBJECT, detail))
        elif name.key.endswith("/") or not name.key.startswith(self.prefix):
            chosen.ignored["elsewhere"] += 1
        else:
            named.append(NamedObject(position=position, name=name, size=event.size, value=value))

    def _without_known(self, named: Sequence[NamedObject], chosen: ChosenObjects, dedup: DedupPlan) -> None:
        if not named:
            return
        objects, keys = _identified(named, dedup)
        memory = worker_memory(dedup, self.store)
        known = memory.events(OBJECTS, dedup.known.get(OBJECTS, ()), self.store).have(objects)
        known |= repeated_after(objects, known, dedup.window_seconds)
        known_keys = memory.events(KEYS, dedup.known.get(KEYS, ()), self.store).have(keys)
        fresh = np.flatnonzero(~known)
        known_keys[fresh] |= repeated(keys.take(fresh), dedup.window_seconds)
        chosen.ignored["repeated"] += int(known.sum())
        for row in fresh.tolist():
            self._take(replace(named[row], overwrites=bool(known_keys[row])), chosen)
        chosen.taken, chosen.keys = objects.take(fresh), keys.take(fresh)

    def _take(self, named: NamedObject, chosen: ChosenObjects) -> None:
        if named.overwrites and self.overwritten is OverwritePolicy.DEAD_LETTER:
            detail = f"{named.name.key} was overwritten, and by GAMELAKE_FILES_OVERWRITTEN such files are not read"
            rejected = _rejected(named.position, named.name, named.value, DeadLetterReason.OVERWRITTEN_FILE, detail)
            chosen.rejected.append(rejected)
        else:
            chosen.objects.append(named)


def _parse(value: bytes | None) -> list[ObjectEvent]:
    found = object_events(value)
    if len(found) > MOST_OBJECTS:
        raise NotificationError(f"the notification names {len(found)} objects, more than {MOST_OBJECTS}")
    return found


def repeated_after(events: Events, known: Flags, window_seconds: int) -> Flags:
    """Which of the events that are not `known` repeat an earlier event of the list (bool, one per event)."""
    result = np.zeros(len(events), np.bool_)
    rows = np.flatnonzero(~known)
    result[rows] = repeated(events.take(rows), window_seconds)
    return result


def _identified(named: Sequence[NamedObject], dedup: DedupPlan) -> tuple[Events, Events]:
    identities = Identities(dedup.seed)
    seconds = np.array([each.position.microseconds // _MICROSECONDS for each in named], np.int64)
    codes = np.zeros(len(named), np.int64)
    contents = pa.array([each.name.text for each in named], pa.string())
    keys = pa.array([f"{each.name.bucket}\n{each.name.key}" for each in named], pa.string())
    return (
        Events.of(*identities.of(["object"], codes, contents), seconds),
        Events.of(*identities.of(["key"], codes, keys), seconds),
    )


def _rejected(
    position: ObjectPosition, name: ObjectName, value: bytes | None, reason: DeadLetterReason, detail: str
) -> RejectedNotification:
    return RejectedNotification(position=position, name=name, value=value, reason=reason, detail=detail)
