"""The object store: whole objects under one location, with the conditional put that commits rest on."""

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
from gamelake.storage.local_files import create_file, replace_file, sync

_ALLOW_HTTP = "AWS_ALLOW_HTTP"
_AT_ONCE, _AHEAD = 16, 256
_LOCAL_AT_ONCE, _FAR_AT_ONCE = 8, 64
_CREDENTIAL_VARIABLES = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
# One object for all processes, never deleted: a stream's key may not be allowed to delete it.
PROBE = "_gamelake/store-self-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A lakehouse's `file://` or `s3://` URI and its store's options, with keys, which `repr` leaves out.

    Attributes:
        synced: for a local disk, whether writes are on the disk before they return, so that a power cut undoes none.
        at_once: how many independent requests to make at once; 0: as many as suit the kind of store.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    synced: bool = False
    at_once: int = 0

    def child(self, path: str) -> str:
        """URI of something inside."""
        return f"{self.uri.rstrip('/')}/{path}"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a listing: its path, its size in bytes, the time of its last write by the store's clock."""

    path: str
    size: int
    written_at: datetime


class Store:
    """Reads and writes whole objects by their path inside a location."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._objects = open_objects(location)
        parts = urlsplit(location.uri)
        self._synced_folder = Path(unquote(parts.path)) if parts.scheme == "file" and location.synced else None

    @property
    def at_once(self) -> int:
        """How many independent requests are worth making at once.

        Requests to a far store mostly wait: with 8 at once, a thousand of 40 ms would take 5 s.
        """
        return self.location.at_once or (_LOCAL_AT_ONCE if self.is_local else _FAR_AT_ONCE)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of the local disk."""
        return self.location.uri.startswith("file:")

    def put_new(self, path: str, content: bytes) -> bool:
        """Create an object that must not exist yet.

        Returns:
            Whether the object now holds `content`: also true when it held just that before, because a
            conditional put whose reply was lost finds its own object on the retry.
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
        """Copy an object inside the store; on a local disk, link it.

        Raises:
            FileNotFoundError: there is no such object.
        """
        obstore.copy(self._objects, path, to)
        if self._synced_folder is not None:
            sync((self._synced_folder / to).parent)

    def get(self, path: str) -> bytes | None:
        """The content of an object, None if there is none."""
        try:
            return bytes(obstore.get(self._objects, path).bytes())
        except FileNotFoundError:
            return None

    def get_all(self, paths: Iterable[str]) -> Iterator[bytes | None]:
        """The contents of many objects in the order of `paths`, None where there is none; many at a time."""
        ahead = iter(paths)
        with ThreadPoolExecutor(max(_AT_ONCE, self.at_once)) as pool:
            while portion := list(islice(ahead, _AHEAD)):
                yield from pool.map(self.get, portion)

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Those of the paths that name no object, in their order; asked many at a time."""
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
        """A range of an object's bytes, shorter if the object ends before; None if there is no object."""
        try:
            return bytes(obstore.get_range(self._objects, path, start=start, length=length))
        except FileNotFoundError:
            return None

    def delete(self, path: str) -> None:
        """Delete an object, if it exists."""
        with suppress(FileNotFoundError):
            obstore.delete(self._objects, path)

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete objects, as far as they exist: portion by portion in the order of `paths`, many of one at a time."""
        ahead = iter(paths)
        with ThreadPoolExecutor(max(_AT_ONCE, self.at_once)) as pool:
            while portion := list(islice(ahead, _AHEAD)):
                for _ in pool.map(self.delete, portion):
                    pass  # an error is raised here

    def written_at(self, path: str) -> datetime | None:
        """When an object was last written, by the store's clock; None if there is none."""
        try:
            return obstore.head(self._objects, path)["last_modified"]
        except FileNotFoundError:
            return None

    def objects(self, prefix: str, after: str | None = None) -> Iterator[StoredObject]:
        """All objects under a folder, or those whose paths sort after another path; on a local disk in no order."""
        for batch in obstore.list(self._objects, prefix, offset=after):
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
    raise SettingsError(f"the lakehouse is '{location.uri}'; it must start with file:// or s3://")


def _open_s3(location: Location) -> S3Store:
    # delta-rs takes this among the store's options; here it is an option of the HTTP client.
    config = {name: value for name, value in location.options.items() if name != _ALLOW_HTTP}
    encrypted = location.options.get(_ALLOW_HTTP) != "true"
    return S3Store.from_url(location.uri, config=config, client_options={"allow_http": not encrypted})  # type: ignore[arg-type] # keys are S3's own


def shared_credentials(file: Path, profile: str) -> Mapping[str, str]:
    """A profile's keys, by the names of the equivalent environment variables.

    Source: AWS SDKs and Tools Reference Guide, heading "Format of the credentials file".

    Raises:
        SettingsError: the file or the profile is missing, or has no keys; the message has no value of the file.
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
        raise SettingsError(f"AWS_SHARED_CREDENTIALS_FILE is '{file}', which is no credentials file") from None
    except KeyError:
        raise SettingsError(
            f"AWS_SHARED_CREDENTIALS_FILE is '{file}', which has no profile '{profile}'; AWS_PROFILE names another one"
        ) from None


def require_put_if_absent(store: Store) -> None:
    """Check that a store refuses to create an object that exists.

    Raises:
        StoreError: it does not, or these keys may not read or write it; the message names the store and the remedy.
        StoreUnavailableError: it can't be reached, or is full.
    """
    try:
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
            f"{store.location.uri} takes no write, by which a start tests it ({PROBE}). If it is full, free space or "
            f"raise its limit (runbook ObjectStoreFilling); if it does not respond, start it: {error}"
        ) from error
    if not kept:
        raise StoreError(_unfit(store))


def _keeps_the_first(store: Store) -> bool:
    """Whether a second conditional put leaves the first object as it is."""
    store.put_new(PROBE, uuid.uuid4().bytes)
    first = store.get(PROBE)
    overwritten = store.put_new(PROBE, uuid.uuid4().bytes)
    return first is not None and not overwritten and store.get(PROBE) == first


def _unfit(store: Store) -> str:
    return (
        f"the store of {store.location.uri} does not put objects only if they are absent (it ignores the header "
        "If-None-Match): two writers would overwrite each other's commits without an error. Nothing was read or "
        "written. Use a store with conditional writes, such as AWS S3 or MinIO, or update this one"
    )
