"""A folder whose files are objects: what is written there, as the operating system tells it."""

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
    """One folder, whose name is the bucket's."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._path = path.resolve()
        self._objects = LocalStore(self._path)

    def changes(self, stop: Event) -> Iterator[list[ObjectChange]]:
        """What happens from now on, until it is told to stop; several changes of a moment together."""
        for happened in watch(self._path, stop_event=stop, recursive=True, raise_interrupt=False):
            found = (self._change(kind, Path(name)) for kind, name in sorted(happened, key=lambda each: each[1]))
            yield [change for change in found if change is not None]

    def change(self, key: str) -> ObjectChange | None:
        """An object as it is now; None if it is none, or not yet."""
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
