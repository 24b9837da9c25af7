"""One folder of a file system or an object store, with the one promise that commits rest on: put if absent."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, S3Store

from gamelake.errors import SettingsError

_ALLOW_HTTP = "AWS_ALLOW_HTTP"
_AT_ONCE, _AHEAD = 16, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a lakehouse is: a `file://` or `s3://` URI, and how to reach it. Safe to send to tasks, never to print."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def child(self, path: str) -> str:
        """URI of something inside."""
        return f"{self.uri.rstrip('/')}/{path}"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing has it: its path, its size in bytes, when it was written by the store's clock."""

    path: str
    size: int
    written_at: datetime


class Store:
    """Reads and writes whole objects by their path inside a location."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._objects = open_objects(location)

    def put_new(self, path: str, content: bytes) -> bool:
        """Create an object that must not exist yet.

        Returns:
            Whether the object now holds `content`: also true when it held just that before, because a
            conditional put whose reply was lost finds its own object on the retry.
        """
        try:
            obstore.put(self._objects, path, content, mode="create")
        except AlreadyExistsError:
            return self.get(path) == content
        return True

    def put(self, path: str, content: bytes) -> None:
        """Create or replace an object."""
        obstore.put(self._objects, path, content)

    def copy(self, path: str, to: str) -> None:
        """Make an object like another one, inside the store: on a local disk a link to it.

        Raises:
            FileNotFoundError: there is none.
        """
        obstore.copy(self._objects, path, to)

    def get(self, path: str) -> bytes | None:
        """The content of an object, None if there is none."""
        try:
            return bytes(obstore.get(self._objects, path).bytes())
        except FileNotFoundError:
            return None

    def get_all(self, paths: Sequence[str]) -> Iterator[bytes | None]:
        """The contents of many objects in their order, read ahead: each alone costs a trip to the store."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for start in range(0, len(paths), _AHEAD):
                yield from pool.map(self.get, paths[start : start + _AHEAD])

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Some bytes of an object, fewer if it ends before; None if there is no object."""
        try:
            return bytes(obstore.get_range(self._objects, path, start=start, length=length))
        except FileNotFoundError:
            return None

    def delete(self, path: str) -> None:
        """Remove an object; one that is gone already is as good."""
        with suppress(FileNotFoundError):
            obstore.delete(self._objects, path)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """All objects under a folder."""
        for batch in obstore.list(self._objects, prefix):
            for item in batch:
                yield StoredObject(item["path"], item["size"], item["last_modified"])

    def paths(self, prefix: str) -> list[str]:
        """Paths of all objects under a folder, sorted."""
        return sorted(item["path"] for batch in obstore.list(self._objects, prefix) for item in batch)

    def folders(self, prefix: str) -> list[str]:
        """Paths of the folders directly under a folder, sorted."""
        return sorted(obstore.list_with_delimiter(self._objects, prefix)["common_prefixes"])


def open_objects(location: Location) -> "obstore.store.ObjectStore":
    """The client of a location."""
    parts = urlsplit(location.uri)
    if parts.scheme == "file":
        return LocalStore(Path(unquote(parts.path)), mkdir=True)
    if parts.scheme == "s3":
        return _open_s3(location)
    raise SettingsError(f"a lakehouse lives under file:// or s3://, not '{location.uri}'")


def _open_s3(location: Location) -> S3Store:
    # One name for delta-rs, which takes all options from one place, is another kind of option here.
    config = {name: value for name, value in location.options.items() if name != _ALLOW_HTTP}
    encrypted = location.options.get(_ALLOW_HTTP) != "true"
    return S3Store.from_url(location.uri, config=config, client_options={"allow_http": not encrypted})  # type: ignore[arg-type] # keys are S3's own
