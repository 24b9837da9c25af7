"""A folder whose files are treated as objects; changes are detected by the operating system's file events."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from watchfiles import Change as Happened
from watchfiles import watch

from gamelake.model.logs import event_logger
from gamelake.streaming.files.arrivals.any_names import FolderOfAnyNames
from gamelake.streaming.files.arrivals.changes import ObjectChange, change_of
from gamelake.streaming.files.arrivals.landing import is_partial
from gamelake.streaming.files.arrivals.notifications import can_be_notified

log = event_logger("services.notifier")


class Folder:
    """A folder; its name is the name of the bucket."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._path = path.resolve()
        self._files = FolderOfAnyNames(self._path)

    def changes(self, stop: Event) -> Iterator[list[ObjectChange]]:
        """Yield changes from now on until stopped, in groups that were detected together."""
        while not stop.is_set():
            try:
                for happened in watch(self._path, stop_event=stop, recursive=True, raise_interrupt=False):
                    in_order = sorted(happened, key=lambda each: each[1])
                    found = (self._change(kind, Path(name)) for kind, name in in_order)
                    yield [change for change in found if change is not None]
            except RuntimeError as error:
                # The library ends its watch at a file whose name is not text.
                log.warning("watch_interrupted", error=error, action="rename the file, and run jobs.reconcile_files")

    def change(self, key: str) -> ObjectChange | None:
        """Return the present state of an object; None if it does not exist or is not complete."""
        found = None if is_partial(key) else self._files.find(key)
        return None if found is None else change_of(found)

    def _change(self, kind: Happened, path: Path) -> ObjectChange | None:
        key = path.relative_to(self._path).as_posix()
        if not can_be_notified(key):
            log.warning("file_not_notified", path=ascii(key), action="rename the file")
            return None
        if kind is not Happened.deleted:
            return self.change(key)
        return ObjectChange(bucket=self._path.name, key=key, moment=datetime.now(UTC), event="s3:ObjectRemoved:Delete")
