"""The bucket or the folder that files of events arrive in."""

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
    """The object is not there any more."""


class OverwrittenObjectError(Exception):
    """The object has another content than the one that was named."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing has it; `etag` without quotes."""

    name: ObjectName
    size: int
    moment_microseconds: int


class LandingBucket:
    """Reads objects by the names that notifications give them."""

    def __init__(self, location: Location) -> None:
        self.bucket = bucket_of(location)
        self._objects: ObjectStore = open_objects(location)

    def read(self, name: ObjectName, limit: int) -> bytes:
        """The content that was named; of one that is larger than `limit` (bytes) the first `limit` + 1.

        Raises:
            MissingObjectError: it is gone.
            OverwrittenObjectError: the object has another content by now.
        """
        options: obstore.GetOptions = {}
        if name.version:
            options["version"] = name.version
        try:
            found = obstore.get(self._objects, name.key, options=options)
        except FileNotFoundError:
            raise MissingObjectError(f"{name.bucket}/{name.key} is not there any more") from None
        except PreconditionError:
            raise OverwrittenObjectError(f"{name.bucket}/{name.key} was written again") from None
        etag = (found.meta.get("e_tag") or "").strip('"')
        if name.etag and etag and etag != name.etag:
            raise OverwrittenObjectError(f"{name.bucket}/{name.key} was written again: it is {etag} by now")
        if found.meta["size"] > limit:
            return bytes(obstore.get_range(self._objects, name.key, start=0, length=limit + 1))
        return bytes(found.bytes())

    def objects(self, prefix: str) -> "list[StoredObject]":
        """What a folder of the bucket holds: the only listing, for reconciling alone."""
        found = []
        for batch in obstore.list(self._objects, prefix or None):
            for each in batch:
                name = ObjectName(
                    bucket=self.bucket, key=each["path"], version="", etag=(each.get("e_tag") or "").strip('"')
                )
                moment = int(each["last_modified"].timestamp() * 1_000_000)
                found.append(StoredObject(name, each["size"], moment))
        return found


def is_partial(key: str) -> bool:
    """Whether a file is not written to its end, by its name: how programs name such files in folders."""
    name = key.rsplit("/", 1)[-1]
    return name.startswith(".") or name.endswith(_PARTIAL)


def bucket_of(location: Location) -> str:
    """The name of the bucket; of a folder, its own name."""
    parts = urlsplit(location.uri)
    return parts.netloc if parts.scheme == "s3" else Path(unquote(parts.path)).name
