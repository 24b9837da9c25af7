"""Which objects of a batch's notifications are to be read: each content once, however often it is named."""

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

_NOBODY = ObjectName(bucket="", key="", version="", etag="")
_MICROSECONDS = 1_000_000


@dataclass(slots=True)
class ChosenObjects:
    """What notifications come to: objects to read, letters, and how many told of nothing to read, by why.

    `taken` are the identities of the objects, `keys` those of their keys.
    """

    objects: list[NamedObject] = field(default_factory=list)
    letters: list[RejectedNotification] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    taken: Events | None = None
    keys: Events | None = None


class OverwritePolicy(StrEnum):
    """What to do with an object whose key had another content before."""

    READ = "read"
    SET_ASIDE = "set_aside"


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses for one bucket, and of it what stands under a prefix."""

    bucket: str
    prefix: str
    overwritten: OverwritePolicy
    store: Store

    def choose(self, notifications: pa.Table, dedup: DedupPlan) -> ChosenObjects:
        """Look through notifications (partition, offset, timestamp, value) in the order in which they stand."""
        chosen = ChosenObjects()
        named: list[NamedObject] = []
        columns = [notifications[name].to_pylist() for name in ("partition", "offset", "value")]
        moments = notifications["timestamp"].cast(pa.int64()).to_pylist()
        for partition, offset, value, moment in zip(*columns, moments, strict=True):
            place = ObjectPosition(partition=partition, offset=offset, index=0, microseconds=moment)
            self._read(place, value, chosen, named)
        self._without_known(named, chosen, dedup)
        return chosen

    def _read(
        self, place: ObjectPosition, value: bytes | None, chosen: ChosenObjects, named: list[NamedObject]
    ) -> None:
        try:
            found = _told(value)
        except NotificationError as error:
            chosen.letters.append(_letter(place, _NOBODY, value, DeadLetterReason.BAD_NOTIFICATION, str(error)))
            return
        if not found:
            chosen.passed_over["no_object"] += 1
        for index, notice in enumerate(found):
            at = ObjectPosition(
                partition=place.partition, offset=place.offset, index=index, microseconds=place.microseconds
            )
            self._sort(at, notice, value or b"", chosen, named)

    def _sort(
        self, place: ObjectPosition, notice: ObjectEvent, value: bytes, chosen: ChosenObjects, named: list[NamedObject]
    ) -> None:
        name = notice.name
        if notice.happening is ObjectEventType.REMOVED:
            chosen.passed_over["removed"] += 1
        elif name.bucket != self.bucket:
            detail = f"the bucket is {name.bucket}; this job reads {self.bucket} alone"
            chosen.letters.append(_letter(place, name, value, DeadLetterReason.FOREIGN_OBJECT, detail))
        elif name.key.endswith("/") or not name.key.startswith(self.prefix):
            chosen.passed_over["elsewhere"] += 1
        else:
            named.append(NamedObject(place=place, name=name, size=notice.size, value=value))

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
        chosen.passed_over["repeated"] += int(known.sum())
        for row in fresh.tolist():
            self._take(replace(named[row], overwrites=bool(known_keys[row])), chosen)
        chosen.taken, chosen.keys = objects.take(fresh), keys.take(fresh)

    def _take(self, named: NamedObject, chosen: ChosenObjects) -> None:
        if named.overwrites and self.overwritten is OverwritePolicy.SET_ASIDE:
            detail = f"{named.name.key} was written again, and GAMELAKE_FILES_OVERWRITTEN sets such files aside"
            letter = _letter(named.place, named.name, named.value, DeadLetterReason.OVERWRITTEN_FILE, detail)
            chosen.letters.append(letter)
        else:
            chosen.objects.append(named)


def _told(value: bytes | None) -> list[ObjectEvent]:
    found = object_events(value)
    if len(found) > MOST_OBJECTS:
        raise NotificationError(f"the notification names {len(found)} objects, more than {MOST_OBJECTS}")
    return found


def repeated_after(events: Events, known: Flags, window_seconds: int) -> Flags:
    """Which of the events that are not known yet come again in the same list."""
    result = np.zeros(len(events), np.bool_)
    rows = np.flatnonzero(~known)
    result[rows] = repeated(events.take(rows), window_seconds)
    return result


def _identified(named: Sequence[NamedObject], dedup: DedupPlan) -> tuple[Events, Events]:
    identities = Identities(dedup.seed)
    seconds = np.array([each.place.microseconds // _MICROSECONDS for each in named], np.int64)
    codes = np.zeros(len(named), np.int64)
    contents = pa.array([each.name.text for each in named], pa.string())
    keys = pa.array([f"{each.name.bucket}\n{each.name.key}" for each in named], pa.string())
    return (
        Events.of(*identities.of(["object"], codes, contents), seconds),
        Events.of(*identities.of(["key"], codes, keys), seconds),
    )


def _letter(
    place: ObjectPosition, name: ObjectName, value: bytes | None, reason: DeadLetterReason, detail: str
) -> RejectedNotification:
    return RejectedNotification(place=place, name=name, value=value, reason=reason, detail=detail)
