"""Chooses the objects that a batch reads: each content once, whatever the number of its notifications."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import Events, KnownEvents, repeated
from gamelake.ledger.coordinates import MOST_OBJECTS
from gamelake.ledger.skipped_records import SkippedRecords
from gamelake.model.arrays import Flags
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.objects.store import Store
from gamelake.streaming.dedup.worker_memory import worker_memory
from gamelake.streaming.files.arrivals.notifications import (
    NotificationError,
    ObjectEvent,
    ObjectEventType,
    ObjectName,
    object_events,
)
from gamelake.streaming.files.coordinates import ObjectPosition
from gamelake.streaming.files.plan import NamedObject, RejectedNotification
from gamelake.streaming.files.silver_ids import KEYS, OBJECTS
from gamelake.streaming.plan import DedupPlan, clock_now

_NO_OBJECT = ObjectName(bucket="", key="", version="", etag="")
_MICROSECONDS = 1_000_000


@dataclass(slots=True)
class ChosenObjects:
    """The objects and dead letters of a batch of notifications.

    Attributes:
        objects: the objects to read, in the order of their notifications.
        rejected: notifications that become dead letters.
        ignored: the number of objects that are not read, by reason.
        taken: the identities of the new contents, which include overwritten files that become dead letters; None if the
            batch names no objects.
        keys: the identities of the keys of these contents, in the same order.
    """

    objects: list[NamedObject] = field(default_factory=list)
    rejected: list[RejectedNotification] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    taken: Events | None = None
    keys: Events | None = None


class OverwritePolicy(StrEnum):
    """The policy for an object whose key had another content before: read it, or write it to the dead letters."""

    READ = "read"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses objects of one bucket under one prefix.

    Attributes:
        bucket: the name of the bucket.
        prefix: of the keys.
        overwritten: the policy for overwritten objects.
        store: the lakehouse, which has the identities of objects.
    """

    bucket: str
    prefix: str
    overwritten: OverwritePolicy
    store: Store

    def choose(
        self, notifications: pa.Table, dedup: DedupPlan, skipped: Sequence[SkippedRecords] = ()
    ) -> ChosenObjects:
        """Choose objects from notifications, in the order of the notifications.

        Args:
            notifications: the columns partition (int32), offset (int64), timestamp (microseconds) and value (binary).
            dedup: the identities of objects that were read before.
            skipped: notifications whose objects are not read.
        """
        chosen = ChosenObjects()
        named: list[NamedObject] = []
        columns = [notifications[name].to_pylist() for name in ("partition", "offset", "value")]
        moments = notifications["timestamp"].cast(pa.int64()).to_pylist()
        now = min(dedup.clock, clock_now())
        for partition, offset, value, moment in zip(*columns, moments, strict=True):
            # A producer may set any timestamp or none. One in the future would expire all remembered identities.
            arrived = moment if moment is not None and 0 < moment <= now else now
            position = ObjectPosition(partition=partition, offset=offset, index=0, microseconds=arrived)
            if problems := [each.problem for each in skipped if each.has(partition, offset)]:
                poisonous = _rejected(position, _NO_OBJECT, value, DeadLetterReason.POISONOUS, problems[0])
                chosen.rejected.append(poisonous)
            else:
                self._read(position, value, chosen, named)
        self._without_known(named, chosen, dedup)
        return chosen

    def _read(
        self, position: ObjectPosition, value: bytes | None, chosen: ChosenObjects, named: list[NamedObject]
    ) -> None:
        try:
            found = _parse(value)
        except NotificationError as error:
            chosen.rejected.append(_bad_notification(position, value, error))
            return
        if not found:
            chosen.ignored["no_object"] += 1
        for index, event in enumerate(found):
            at = ObjectPosition(
                partition=position.partition, offset=position.offset, index=index, microseconds=position.microseconds
            )
            if isinstance(event, NotificationError):
                chosen.rejected.append(_bad_notification(at, value, event))
            else:
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
        memory = worker_memory(self.store, dedup.in_memory, {dedup.seed})

        def read(partition: int) -> KnownEvents:
            files = dedup.known.get(partition, ())
            return memory.partition(dedup.seed, dedup.window_seconds, partition, files, self.store)

        known = read(OBJECTS).have(objects)
        known |= repeated_after(objects, known, dedup.window_seconds)
        known_keys = read(KEYS).have(keys)
        fresh = np.flatnonzero(~known)
        known_keys[fresh] |= repeated(keys.take(fresh), dedup.window_seconds)
        chosen.ignored["repeated"] += int(known.sum())
        for row in fresh.tolist():
            self._take(replace(named[row], overwrites=bool(known_keys[row])), chosen)
        chosen.taken, chosen.keys = objects.take(fresh), keys.take(fresh)

    def _take(self, named: NamedObject, chosen: ChosenObjects) -> None:
        if named.overwrites and self.overwritten is OverwritePolicy.DEAD_LETTER:
            detail = f"{named.name.key} was overwritten, and GAMELAKE_FILES_OVERWRITTEN excludes such files"
            rejected = _rejected(named.position, named.name, named.value, DeadLetterReason.OVERWRITTEN_FILE, detail)
            chosen.rejected.append(rejected)
        else:
            chosen.objects.append(named)


def _parse(value: bytes | None) -> list[ObjectEvent | NotificationError]:
    found = object_events(value)
    if len(found) > MOST_OBJECTS:
        raise NotificationError(f"the notification names {len(found)} objects, more than {MOST_OBJECTS}")
    return found


def _bad_notification(position: ObjectPosition, value: bytes | None, error: NotificationError) -> RejectedNotification:
    return _rejected(position, _NO_OBJECT, value, DeadLetterReason.BAD_NOTIFICATION, str(error))


def repeated_after(events: Events, known: Flags, window_seconds: int) -> Flags:
    """Find the events that repeat an earlier event of the list.

    Args:
        events: in order.
        known: events that don't count (bool, one per event).
        window_seconds: events further apart are not repetitions.

    Returns:
        True for each event that is not `known` and repeats an earlier one that is not `known` (bool, one per event).
    """
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
