"""The object store: whole objects under one location, with the conditional put that commits rely on."""

import configparser
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import LocalStore, S3Store

from gamelake.model.errors import SettingsError, StoreError, StoreUnavailableError
from gamelake.objects.local_files import create_file, replace_file, sync

_ALLOW_HTTP = "AWS_ALLOW_HTTP"
_AT_ONCE, _AHEAD = 16, 256
_LOCAL_AT_ONCE, _FAR_AT_ONCE = 8, 64
_CREDENTIAL_VARIABLES = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
# One object for all processes. It is never deleted, because a stream's key may lack the permission.
PROBE = "_gamelake/store-self-test"
# This response is permanent, but the client treats it as an outage and retries for 30 seconds.
_NEVER, _FEW_RETRIES = "501 Not Implemented", 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A lakehouse's URI, and the options of its store.

    Attributes:
        uri: `file:///...` or `s3://...`.
        options: the store's options by the names of environment variables; keys are among them, so `repr` omits all.
        synced: for a local disk, True if writes reach the disk before they return, so that a power cut undoes none.
        at_once: the number of independent requests to make in parallel; 0 for the default of the kind of store.

    Example:
        >>> Location(uri="s3://lakehouse").child("silver/events")
        's3://lakehouse/silver/events'
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    synced: bool = False
    at_once: int = 0

    def child(self, path: str) -> str:
        """Return the URI of a path inside the location."""
        return f"{self.uri.rstrip('/')}/{path}"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a listing.

    Attributes:
        path: inside the location.
        size: in bytes.
        written_at: the time of its last write by the store's clock, in UTC.
    """

    path: str
    size: int
    written_at: datetime


class Store:
    """Reads and writes whole objects by their path inside a location.

    All methods may be called from several threads. If the store is unreachable or refuses a request, they raise
    obstore's `BaseError` after the client's retries, or `OSError` on a local disk.

    Attributes:
        location: of all paths.

    Example:
        >>> store = Store(location)
        >>> store.put_new("notes/1.txt", b"first"), store.put_new("notes/1.txt", b"second")
        (True, False)
        >>> store.get("notes/1.txt"), store.get("notes/2.txt")
        (b'first', None)
        >>> store.paths("notes")
        ['notes/1.txt']
    """

    def __init__(self, location: Location, retries: int | None = None) -> None:
        """Open a location; no request is made.

        Args:
            location: its folder is created if it is on the local disk.
            retries: how often the client repeats a failed request; None for obstore's default of ten.

        Raises:
            SettingsError: the URI begins with neither file:// nor s3://.
        """
        self.location = location
        self._objects = open_objects(location, retries)
        parts = urlsplit(location.uri)
        self._synced_folder = Path(unquote(parts.path)) if parts.scheme == "file" and location.synced else None

    @property
    def at_once(self) -> int:
        """The number of independent requests that are worth making in parallel.

        Requests to a remote store mostly wait: with 8 in parallel, a thousand of 40 ms would take 5 s.
        """
        return self.location.at_once or (_LOCAL_AT_ONCE if self.is_local else _FAR_AT_ONCE)

    @property
    def is_local(self) -> bool:
        """True if the location is a folder of the local disk."""
        return self.location.uri.startswith("file:")

    def put_new(self, path: str, content: bytes) -> bool:
        """Create an object that must not exist yet.

        Returns:
            True if the object now holds `content`. That includes an object that existed with the same content: if the
            reply to a conditional put is lost, the retry finds its own object.
        """
        try:
            if self._synced_folder is None:
                obstore.put(self._objects, path, content, mode="create")
            else:
                create_file(self._synced_folder / path, content)
        except (AlreadyExistsError, FileExistsError):
            return self.get(path) == content
        return True

    def put(self, path: str, content: bytes) -> None:
        """Create or replace an object."""
        if self._synced_folder is None:
            obstore.put(self._objects, path, content)
        else:
            replace_file(self._synced_folder / path, content)

    def copy(self, path: str, to: str) -> None:
        """Copy an object inside the store; on a local disk, create a hard link.

        Raises:
            FileNotFoundError: there is no object at `path`.
        """
        obstore.copy(self._objects, path, to)
        if self._synced_folder is not None:
            sync((self._synced_folder / to).parent)

    def get(self, path: str) -> bytes | None:
        """Read the content of an object; return None if there is no object."""
        try:
            return bytes(obstore.get(self._objects, path).bytes())
        except FileNotFoundError:
            return None

    def require(self, path: str, reason: str) -> bytes:
        """Read the content of an object that must exist.

        Args:
            path: of the object.
            reason: why it must, such as "a task has just written it".

        Raises:
            StoreError: there is no object.
        """
        content = self.get(path)
        if content is None:
            raise StoreError(f"{path} is missing, though {reason}")
        return content

    def get_all(self, paths: Iterable[str]) -> Iterator[bytes | None]:
        """Yield the contents of many objects in the order of `paths`; None for a path without an object.

        Objects are read ahead in parallel, up to 256 of them.
        """
        ahead = iter(paths)
        with ThreadPoolExecutor(max(_AT_ONCE, self.at_once)) as pool:
            while portion := list(islice(ahead, _AHEAD)):
                yield from pool.map(self.get, portion)

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return the paths without an object, in their order; requests run in parallel."""
        with ThreadPoolExecutor(max(_AT_ONCE, self.at_once)) as pool:
            found = pool.map(self._exists, paths)
            return [path for path, exists in zip(paths, found, strict=True) if not exists]

    def _exists(self, path: str) -> bool:
        try:
            obstore.head(self._objects, path)
        except FileNotFoundError:
            return False
        return True

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Read `length` bytes of an object from the byte `start`.

        Returns:
            The bytes, fewer if the object ends before; None if there is no object.
        """
        try:
            return bytes(obstore.get_range(self._objects, path, start=start, length=length))
        except FileNotFoundError:
            return None

    def delete(self, path: str) -> None:
        """Delete an object, if it exists."""
        with suppress(FileNotFoundError):
            obstore.delete(self._objects, path)

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete the objects that exist.

        Portions of 256 are deleted one after the other in the order of `paths`, each of them in parallel.
        """
        ahead = iter(paths)
        with ThreadPoolExecutor(max(_AT_ONCE, self.at_once)) as pool:
            while portion := list(islice(ahead, _AHEAD)):
                for _ in pool.map(self.delete, portion):
                    pass  # an error is raised here

    def written_at(self, path: str) -> datetime | None:
        """Return when an object was last written, by the store's clock and in UTC; None if there is no object."""
        try:
            return obstore.head(self._objects, path)["last_modified"]
        except FileNotFoundError:
            return None

    def objects(self, prefix: str, after: str | None = None) -> Iterator[StoredObject]:
        """List the objects under a folder and its subfolders.

        Args:
            prefix: the folder.
            after: if given, only objects whose paths sort after this path are listed.

        Returns:
            The objects: of an object store in ascending order of their paths, of a local disk in no order.
        """
        for batch in obstore.list(self._objects, prefix, offset=after):
            for item in batch:
                yield StoredObject(item["path"], item["size"], item["last_modified"])

    def paths(self, prefix: str) -> list[str]:
        """List the paths of all objects under a folder and its subfolders, sorted."""
        return sorted(item["path"] for batch in obstore.list(self._objects, prefix) for item in batch)

    def folders(self, prefix: str) -> list[str]:
        """List the paths of the folders directly under a folder, sorted."""
        return sorted(obstore.list_with_delimiter(self._objects, prefix)["common_prefixes"])


def open_objects(location: Location, retries: int | None = None) -> "obstore.store.ObjectStore":
    """Open obstore's client of a location; see `Store`.

    Raises:
        SettingsError: the URI begins with neither file:// nor s3://.
    """
    parts = urlsplit(location.uri)
    if parts.scheme == "file":
        return LocalStore(Path(unquote(parts.path)), mkdir=True)
    if parts.scheme == "s3":
        return _open_s3(location, retries)
    raise SettingsError(f"the lakehouse is '{location.uri}'; it must start with file:// or s3://")


def _open_s3(location: Location, retries: int | None) -> S3Store:
    # delta-rs takes this among the store's options; here it is an option of the HTTP client.
    config = {name: value for name, value in location.options.items() if name != _ALLOW_HTTP}
    encrypted = location.options.get(_ALLOW_HTTP) != "true"
    return S3Store.from_url(
        location.uri,
        config=config,  # type: ignore[arg-type] # keys are S3's own
        client_options={"allow_http": not encrypted},
        retry_config=None if retries is None else {"max_retries": retries},
    )


def shared_credentials(file: Path, profile: str) -> Mapping[str, str]:
    """Read a profile's keys, by the names of the equivalent environment variables.

    Source: AWS SDKs and Tools Reference Guide, heading "Format of the credentials file".

    Raises:
        SettingsError: the file or the profile is missing, or has no keys. The message contains no value of the file.
    """
    section = _section(file, profile)
    if "aws_access_key_id" not in section or "aws_secret_access_key" not in section:
        raise SettingsError(
            f"the profile '{profile}' in {file}, which AWS_SHARED_CREDENTIALS_FILE names, "
            "lacks aws_access_key_id or aws_secret_access_key"
        )
    return {variable: section[name] for name, variable in _CREDENTIAL_VARIABLES.items() if section.get(name)}


def _section(file: Path, profile: str) -> Mapping[str, str]:
    # No default section and no interpolation: a secret may hold a percent sign.
    parser = configparser.ConfigParser(default_section="", interpolation=None)
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
        return parser[profile]
    except OSError as error:
        raise SettingsError(
            f"AWS_SHARED_CREDENTIALS_FILE is '{file}', which can't be read: {error.strerror}"
        ) from error
    except (configparser.Error, UnicodeDecodeError):
        # The parser's own message quotes the line, which may be a secret.
        raise SettingsError(f"AWS_SHARED_CREDENTIALS_FILE is '{file}', which is not a credentials file") from None
    except KeyError:
        raise SettingsError(
            f"AWS_SHARED_CREDENTIALS_FILE is '{file}', which has no profile '{profile}'; AWS_PROFILE names another one"
        ) from None


def require_put_if_absent(store: Store) -> None:
    """Check that a store refuses to create an object that exists.

    Raises:
        StoreError: the store overwrites it, or these keys may not read or write. The message names the store and the
            remedy.
        StoreUnavailableError: the store is unreachable or full.
    """
    try:
        _require_an_implementation(store)
        kept = _keeps_the_first(store)
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StoreError(
            f"{store.location.uri} may not be read or written with these keys ({type(error).__name__} for {PROBE}). "
            "docs/settings.md lists where keys are read from, docs/operations.md the rights that a job needs"
        ) from error
    except NotSupportedError as error:
        raise StoreError(_unfit(store)) from error
    except (BaseError, OSError) as error:
        raise StoreUnavailableError(
            f"{store.location.uri} takes no write of the self-test ({PROBE}). If it is full, free space or raise its "
            f"limit (runbook ObjectStoreFilling); if it does not respond, start it: {error}"
        ) from error
    if not kept:
        raise StoreError(_unfit(store))


def _require_an_implementation(store: Store) -> None:
    """Check that the store does not report conditional puts as unsupported; ignore any other error.

    A client with all retries repeats the put next, and raises other errors.

    Raises:
        StoreError: the store reports that.
    """
    try:
        Store(store.location, _FEW_RETRIES).put_new(PROBE, uuid.uuid4().bytes)
    except (BaseError, OSError) as error:
        if _NEVER in str(error):
            raise StoreError(_unfit(store)) from error


def _keeps_the_first(store: Store) -> bool:
    """Return True if a second conditional put does not change the first object."""
    store.put_new(PROBE, uuid.uuid4().bytes)
    first = store.get(PROBE)
    overwritten = store.put_new(PROBE, uuid.uuid4().bytes)
    return first is not None and not overwritten and store.get(PROBE) == first


def _unfit(store: Store) -> str:
    return (
        f"the store of {store.location.uri} does not put objects only if they are absent (it ignores or refuses the "
        "header If-None-Match): two writers would overwrite each other's commits without an error. Nothing was read or "
        "written. Use a store with conditional writes, such as AWS S3 or MinIO, or update this one"
    )
