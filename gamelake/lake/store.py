"""One folder of a file system or an object store, with the one promise that commits rest on: put if absent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, S3Store

from gamelake.errors import SettingsError

_ALLOW_HTTP = "AWS_ALLOW_HTTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a lakehouse is: a `file://` or `s3://` URI, and how to reach it. Safe to send to tasks, never to print."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def child(self, path: str) -> str:
        """URI of something inside."""
        return f"{self.uri.rstrip('/')}/{path}"


class Store:
    """Reads and writes whole objects by their path inside a location."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._objects = _open(location)

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

    def get(self, path: str) -> bytes | None:
        """The content of an object, None if there is none."""
        try:
            return bytes(obstore.get(self._objects, path).bytes())
        except FileNotFoundError:
            return None

    def paths(self, prefix: str) -> list[str]:
        """Paths of all objects under a folder, sorted."""
        return sorted(item["path"] for batch in obstore.list(self._objects, prefix) for item in batch)

    def folders(self, prefix: str) -> list[str]:
        """Paths of the folders directly under a folder, sorted."""
        return sorted(obstore.list_with_delimiter(self._objects, prefix)["common_prefixes"])


def _open(location: Location) -> "obstore.store.ObjectStore":
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
