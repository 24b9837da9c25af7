"""Lists and reads objects whatever their names are.

obstore's paths can't have a name with an empty segment (`a//b`), a control character such as a TAB, or a slash at its
end, and a listing by obstore ends at the first such name. obstore reads all other objects, because it is faster.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from gamelake.model.errors import StoreUnavailableError
from gamelake.objects.store import Location
from gamelake.streaming.files.arrivals.notifications import ObjectName

if TYPE_CHECKING:
    from minio import Minio

_AWS = "https://s3.amazonaws.com"
_DENIED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
# A 404 of a proxy or of a deleted bucket does not mean that the object is missing.
_MISSING_OBJECT = re.compile(r"<Code>NoSuch(Key|Version)</Code>")


class MissingObjectError(Exception):
    """The object was deleted."""


class OverwrittenObjectError(Exception):
    """The object's content has changed since its notification."""


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a listing.

    Attributes:
        name: with the ETag of the current content, and without a version.
        size: in bytes.
        moment_microseconds: the last change, in microseconds since 1970.
    """

    name: ObjectName
    size: int
    moment_microseconds: int


class AnyNames(Protocol):
    """Objects of any name in one bucket or folder.

    All methods may be called in any order, and by several threads. `MissingObjectError` and `OverwrittenObjectError`
    concern one object; `StoreUnavailableError` concerns them all. Any other error may be either: the caller probes
    other objects to find out.
    """

    def objects(self, prefix: str) -> Iterator[ListedObject]:
        """Yield all objects whose names begin with a prefix, in any order.

        Raises:
            StoreUnavailableError: the store does not answer.
        """

    def read(self, name: ObjectName, limit: int) -> memoryview | None:
        """Return the content of an object; None if it is larger than `limit` bytes.

        Raises:
            MissingObjectError: the object was deleted.
            OverwrittenObjectError: the object was overwritten since its notification.
            PermissionError: the store denies access.
            ValueError: no object can have this name, or no client can request it.
            Exception: the store does not answer, or refuses the request.
        """

    def absence(self, name: ObjectName, error: Exception) -> MissingObjectError | StoreUnavailableError:
        """Return the error for an object that the store has not found.

        Args:
            name: of the object.
            error: the store's answer.

        Returns:
            MissingObjectError if the object does not exist, else StoreUnavailableError.
        """


def any_names(location: Location) -> AnyNames:
    """Open a bucket or a folder.

    Raises:
        StoreUnavailableError: the folder does not exist.
    """
    parts = urlsplit(location.uri)
    return BucketOfAnyNames(location) if parts.scheme == "s3" else FolderOfAnyNames(Path(unquote(parts.path)))


def bucket_of(location: Location) -> str:
    """Return the name of the bucket, or of the folder without its path."""
    parts = urlsplit(location.uri)
    return parts.netloc if parts.scheme == "s3" else Path(unquote(parts.path)).name


class BucketOfAnyNames:
    """A bucket of S3, read with a client that sends names unchanged."""

    def __init__(self, location: Location) -> None:
        self._options = location.options
        self._bucket = bucket_of(location)

    @cached_property
    def _client(self) -> Minio:
        # It takes half a second to load, and few tasks need it.
        from minio import Minio  # noqa: PLC0415
        from minio.credentials import IamAwsProvider, StaticProvider  # type: ignore[attr-defined] # noqa: PLC0415

        options = self._options
        key, secret = options.get("AWS_ACCESS_KEY_ID"), options.get("AWS_SECRET_ACCESS_KEY", "")
        address = urlsplit(options.get("AWS_ENDPOINT_URL", _AWS))
        return Minio(
            address.netloc,
            secure=address.scheme == "https",
            region=options.get("AWS_REGION"),
            credentials=StaticProvider(key, secret, options.get("AWS_SESSION_TOKEN")) if key else IamAwsProvider(),
        )

    def objects(self, prefix: str) -> Iterator[ListedObject]:
        """See `AnyNames`."""
        try:
            for found in self._client.list_objects(self._bucket, prefix, recursive=True):
                assert found.object_name is not None and found.last_modified is not None  # noqa: S101, PT018 # as listed
                name = ObjectName(bucket=self._bucket, key=found.object_name, version="", etag=found.etag or "")
                moment = int(found.last_modified.timestamp() * 1_000_000)
                yield ListedObject(name, found.size or 0, moment)
        except Exception as error:
            raise StoreUnavailableError(f"{self._bucket} can't be listed: {error}") from error

    def read(self, name: ObjectName, limit: int) -> memoryview | None:
        """See `AnyNames`."""
        from minio.error import S3Error  # noqa: PLC0415 # as above

        try:
            response = self._client.get_object(self._bucket, name.key, version_id=name.version or None)
        except S3Error as error:
            if error.response.status in _DENIED:
                raise PermissionError(error.code) from None
            if error.response.status == HTTPStatus.NOT_FOUND:
                raise self.absence(name, Exception(error.response.data)) from None
            raise
        try:
            require_same_content(name, response.headers.get("etag", ""))
            size = int(response.headers["content-length"])
            return None if size > limit else memoryview(response.read(decode_content=False))
        finally:
            response.close()
            response.release_conn()

    def absence(self, name: ObjectName, error: Exception) -> MissingObjectError | StoreUnavailableError:
        """See `AnyNames`."""
        if _MISSING_OBJECT.search(str(error)):
            return MissingObjectError(f"{name.bucket}/{name.key} does not exist any more")
        return StoreUnavailableError(
            f"the store answers with 404 for objects of {self._bucket} without saying that they are missing: check "
            f"that the bucket exists: {error}"
        )


class FolderOfAnyNames:
    """A folder of the local disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_dir():
            raise StoreUnavailableError(self._no_folder)

    @property
    def _no_folder(self) -> str:
        return f"the folder {self._path}, in which files arrive, does not exist: mount or create it"

    def objects(self, prefix: str) -> Iterator[ListedObject]:
        """See `AnyNames`; links to folders are followed, each folder once."""
        seen: set[str] = set()
        for place, folders, names in os.walk(self._path, followlinks=True):
            if (real := os.path.realpath(place)) in seen:
                folders.clear()
                continue
            seen.add(real)
            keys = ((Path(place) / name).relative_to(self._path).as_posix() for name in names)
            yield from filter(None, map(self.find, (key for key in keys if key.startswith(prefix))))

    def find(self, key: str) -> ListedObject | None:
        """Return the current state of a file; None if the file does not exist."""
        path = self._path / key
        if not path.is_file():
            return None
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        name = ObjectName(bucket=self._path.name, key=key, version="", etag=_etag(found))
        return ListedObject(name, found.st_size, found.st_mtime_ns // 1_000)

    def read(self, name: ObjectName, limit: int) -> memoryview | None:
        """See `AnyNames`."""
        if {"", ".", ".."} & set(name.key.split("/")):
            raise ValueError("the name is that of another file, or outside the folder")
        try:
            with (self._path / name.key).open("rb") as file:
                require_same_content(name, _etag(os.fstat(file.fileno())))
                content = file.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self.absence(name, error) from None
        return None if len(content) > limit else memoryview(content)

    def absence(self, name: ObjectName, error: Exception) -> MissingObjectError | StoreUnavailableError:
        """See `AnyNames`."""
        if self._path.is_dir():
            return MissingObjectError(f"{name.bucket}/{name.key} does not exist any more")
        return StoreUnavailableError(f"{self._no_folder}: {error}")


def require_same_content(name: ObjectName, etag: str) -> None:
    """Check that an object has the ETag of its notification, if both are known.

    Raises:
        OverwrittenObjectError: it has another ETag.
    """
    etag = etag.strip('"')
    if name.etag and etag and etag != name.etag:
        raise OverwrittenObjectError(f"{name.bucket}/{name.key} was overwritten: its ETag is now {etag}")


def _etag(found: os.stat_result) -> str:
    """Return the ETag of a file in the format of obstore."""
    return f"{found.st_ino:x}-{found.st_mtime_ns // 1_000:x}-{found.st_size:x}"
