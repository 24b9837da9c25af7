"""The bucket or the folder in which files of events arrive."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import PreconditionError
from obstore.store import ObjectStore

from gamelake.storage.store import Location, open_objects
from gamelake.streaming.files.notifications import ObjectName

_PARTIAL = (".tmp", ".part", ".partial")


class MissingObjectError(Exception):
    """The object does not exist any more."""


class OverwrittenObjectError(Exception):
    """The object has other content than its notification says."""


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a listing; `moment_microseconds` is its last change, since 1970."""

    name: ObjectName
    size: int
    moment_microseconds: int


class LandingBucket:
    """Reads objects by the names in notifications, and lists the bucket for reconciliation."""

    def __init__(self, location: Location) -> None:
        self.bucket = bucket_of(location)
        self._objects: ObjectStore = open_objects(location)

    def read(self, name: ObjectName, limit: int) -> bytes:
        """The content of an object; if it is larger than `limit` bytes, its first `limit` + 1 bytes.

        Raises:
            MissingObjectError: the object was deleted.
            OverwrittenObjectError: the object was overwritten since its notification.
        """
        options: obstore.GetOptions = {}
        if name.version:
            options["version"] = name.version
        try:
            found = obstore.get(self._objects, name.key, options=options)
        except FileNotFoundError:
            raise MissingObjectError(f"{name.bucket}/{name.key} does not exist any more") from None
        except PreconditionError:
            raise OverwrittenObjectError(f"{name.bucket}/{name.key} was overwritten") from None
        etag = (found.meta.get("e_tag") or "").strip('"')
        if name.etag and etag and etag != name.etag:
            raise OverwrittenObjectError(f"{name.bucket}/{name.key} was overwritten: its ETag is now {etag}")
        if found.meta["size"] > limit:
            return bytes(obstore.get_range(self._objects, name.key, start=0, length=limit + 1))
        return bytes(found.bytes())

    def objects(self, prefix: str) -> "list[ListedObject]":
        """All objects under a prefix; only reconciliation lists the bucket."""
        found = []
        for batch in obstore.list(self._objects, prefix or None):
            for each in batch:
                name = ObjectName(
                    bucket=self.bucket, key=each["path"], version="", etag=(each.get("e_tag") or "").strip('"')
                )
                moment = int(each["last_modified"].timestamp() * 1_000_000)
                found.append(ListedObject(name, each["size"], moment))
        return found


def is_partial(key: str) -> bool:
    """Whether a file is incomplete, by the usual names of such files: hidden, .tmp, .part, .partial."""
    name = key.rsplit("/", 1)[-1]
    return name.startswith(".") or name.endswith(_PARTIAL)


def bucket_of(location: Location) -> str:
    """The name of the bucket; of a folder, the name of the folder."""
    parts = urlsplit(location.uri)
    return parts.netloc if parts.scheme == "s3" else Path(unquote(parts.path)).name
