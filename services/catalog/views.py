"""Synchronizes Trino's views with the files of sql/views and the tables that exist."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from gamelake.contract.games import load_games
from gamelake.model.errors import StartupError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.serving.sql.views import View, load_views
from services.catalog.errors import TableError, ViewRefusedError
from services.catalog.tables import CatalogTable
from services.catalog.trino import TrinoViews

# Files may have changed, and views may have been changed by a user.
_REFRESH_INTERVAL = timedelta(seconds=60)

log = event_logger(__name__)


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A view that the service made: digests of the wanted definition and of the one that Trino stores."""

    wanted: str
    definition: str


@dataclass(frozen=True, slots=True)
class ViewFiles:
    """The files that declare views and games."""

    folder: Path
    games_file: Path

    def wanted(self, tables: frozenset[str]) -> Mapping[str, tuple[View, str]]:
        """Return the wanted views over these tables, each after those that it reads.

        Raises:
            ViewRefusedError: a file is malformed.
        """
        try:
            views, games = load_views(self.folder, self.games_file), load_games(self.games_file).games
        except StartupError as error:
            raise ViewRefusedError(f"the views are not changed: {error}") from error
        found: dict[str, tuple[View, str]] = {}
        for view in views:
            statement = view.over(games, tables | found.keys())
            if statement is not None:
                found[view.name] = (view, statement)
        return found


class ViewSync:
    """Creates, replaces and drops views; it records its views in the lakehouse, and drops no others."""

    def __init__(
        self, files: ViewFiles, trino: TrinoViews, store: Store, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files = files
        self._trino = trino
        self._store = store
        self._clock = clock
        self._refreshed_at = float("-inf")
        self._tables: frozenset[CatalogTable] = frozenset()
        self._errors: list[TableError] = []

    def synchronize(self, tables: frozenset[CatalogTable]) -> list[TableError]:
        """Create, replace and drop views as declared; a run without new tables sends no query for a minute.

        Returns:
            Errors of single views in the last synchronization.

        Raises:
            TrinoUnavailableError: Trino is not available; the next run retries.
        """
        if tables == self._tables and self._clock() - self._refreshed_at < _REFRESH_INTERVAL.total_seconds():
            return self._errors
        try:
            self._errors = self._synchronize(frozenset(f"{table.layer}.{table.name}" for table in tables))
        except ViewRefusedError as error:
            self._errors = [error]
            log.warning("views_not_synchronized", error=error)
        self._tables, self._refreshed_at = tables, self._clock()
        return self._errors

    def _synchronize(self, tables: frozenset[str]) -> list[TableError]:
        wanted, standing = self._files.wanted(tables), self._trino.definitions()
        errors: list[TableError] = []
        for name, (view, statement) in wanted.items():
            try:
                self._update(view, statement, standing.get(name))
            except ViewRefusedError as error:
                errors.append(error)
                log.warning("view_refused", view=view.name, error=error)
        for name in sorted(standing.keys() - wanted.keys()):
            self._drop_if_ours(name, standing[name])
        return errors

    def _update(self, view: View, statement: str, standing: str | None) -> None:
        digest, note = _digest(view.comment, *map(str, view.columns), statement), self._note(view.name)
        if note is not None and standing is not None and note == _Note(digest, _digest(standing)):
            return
        self._trino.make(view, statement)
        made = _Note(digest, _digest(self._trino.definitions()[view.name]))
        self._store.put(_note_path(view.name), msgspec.json.encode(made))
        log.info("view_created", view=view.name)

    def _drop_if_ours(self, name: str, standing: str) -> None:
        note = self._note(name)
        if note is None or note.definition != _digest(standing):
            return
        try:
            self._trino.drop(name)
        except ViewRefusedError as error:
            # Its name may be missing in the access rules already, which define its owner.
            log.warning("view_refused", view=name, error=error)
            return
        self._store.delete(_note_path(name))
        log.info("view_dropped", view=name)

    def _note(self, name: str) -> _Note | None:
        noted = self._store.get(_note_path(name))
        try:
            return None if noted is None else msgspec.json.decode(noted, type=_Note)
        except msgspec.DecodeError:
            return None


def _note_path(name: str) -> str:
    return f"_gamelake/catalog/views/{name.replace('.', '/')}.json"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
