"""A folder whose files are treated as objects; changes are detected by the operating system's file events."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import obstore
from obstore.store import LocalStore
from watchfiles import Change as Happened
from watchfiles import watch

from gamelake.streaming.files.changes import ObjectChange
from gamelake.streaming.files.landing import is_partial


class Folder:
    """A folder; its name is the name of the bucket."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._path = path.resolve()
        self._objects = LocalStore(self._path)

    def changes(self, stop: Event) -> Iterator[list[ObjectChange]]:
        """Changes from now on until stopped, in groups that were detected together."""
        for happened in watch(self._path, stop_event=stop, recursive=True, raise_interrupt=False):
            found = (self._change(kind, Path(name)) for kind, name in sorted(happened, key=lambda each: each[1]))
            yield [change for change in found if change is not None]

    def change(self, key: str) -> ObjectChange | None:
        """The present state of an object; None if it does not exist or is not complete."""
        if is_partial(key) or not (self._path / key).is_file():
            return None
        try:
            found = obstore.head(self._objects, key)
        except FileNotFoundError:
            return None
        return ObjectChange(
            bucket=self._path.name,
            key=key,
            etag=(found["e_tag"] or "").strip('"'),
            size=found["size"],
            moment=found["last_modified"],
        )

    def _change(self, kind: Happened, path: Path) -> ObjectChange | None:
        key = path.relative_to(self._path).as_posix()
        if kind is not Happened.deleted:
            return self.change(key)
        return ObjectChange(bucket=self._path.name, key=key, moment=datetime.now(UTC), event="s3:ObjectRemoved:Delete")
