"""Brings Trino's views in line with the files of sql/views and the tables that are there."""

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from gamelake.model.errors import StartupError
from gamelake.model.games import load_games
from gamelake.serving.sql.views import View, load_views
from gamelake.storage.store import Store
from services.catalog.errors import TableError, ViewRefusedError
from services.catalog.tables import Table
from services.catalog.trino import TrinoViews

# Files may have changed, and views may have been changed by a person.
_LOOK_AGAIN = timedelta(seconds=60)

log = logging.getLogger(__name__)


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A view that the service made: the digests of what it wanted and of what Trino made of it."""

    wanted: str
    definition: str


@dataclass(frozen=True, slots=True)
class ViewFiles:
    """Where views and games are written down."""

    folder: Path
    games_file: Path

    def wanted(self, tables: frozenset[str]) -> Mapping[str, tuple[View, str]]:
        """The views that there should be over these tables, each after those that it reads.

        Raises:
            ViewRefusedError: a file is not as it must be.
        """
        try:
            views, games = load_views(self.folder), load_games(self.games_file).games
        except StartupError as error:
            raise ViewRefusedError(f"the views stay as they are: {error}") from error
        found: dict[str, tuple[View, str]] = {}
        for view in views:
            statement = view.over(games, tables | found.keys())
            if statement is not None:
                found[view.name] = (view, statement)
        return found


class ViewKeeper:
    """Makes, replaces and drops views; what it has made it notes in the lakehouse, and it drops nothing else."""

    def __init__(
        self, files: ViewFiles, trino: TrinoViews, store: Store, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files = files
        self._trino = trino
        self._store = store
        self._clock = clock
        self._looked_at = float("-inf")
        self._tables: frozenset[Table] = frozenset()
        self._errors: list[TableError] = []

    def bring_in_line(self, tables: frozenset[Table]) -> list[TableError]:
        """Make the views what they should be; a round in which nothing is new asks Trino nothing.

        Returns:
            What was wrong with single views when they were last looked at.

        Raises:
            TrinoSilentError: Trino gave no answer; what is missing is done in the next round.
        """
        if tables == self._tables and self._clock() - self._looked_at < _LOOK_AGAIN.total_seconds():
            return self._errors
        try:
            self._errors = self._look(frozenset(f"{table.layer}.{table.name}" for table in tables))
        except ViewRefusedError as error:
            self._errors = [error]
            log.warning("%s", error)
        self._tables, self._looked_at = tables, self._clock()
        return self._errors

    def _look(self, tables: frozenset[str]) -> list[TableError]:
        wanted, standing = self._files.wanted(tables), self._trino.definitions()
        errors: list[TableError] = []
        for name, (view, statement) in wanted.items():
            try:
                self._keep(view, statement, standing.get(name))
            except ViewRefusedError as error:
                errors.append(error)
                log.warning("%s", error)
        for name in sorted(standing.keys() - wanted.keys()):
            self._drop_if_ours(name, standing[name])
        return errors

    def _keep(self, view: View, statement: str, standing: str | None) -> None:
        digest, note = _digest(view.comment, *map(str, view.columns), statement), self._note(view.name)
        if note is not None and standing is not None and note == _Note(digest, _digest(standing)):
            return
        self._trino.make(view, statement)
        made = _Note(digest, _digest(self._trino.definitions()[view.name]))
        self._store.put(_note_path(view.name), msgspec.json.encode(made))
        log.info("made the view %s", view.name)

    def _drop_if_ours(self, name: str, standing: str) -> None:
        note = self._note(name)
        if note is None or note.definition != _digest(standing):
            return
        try:
            self._trino.drop(name)
        except ViewRefusedError as error:
            # Its name may be out of the access rules already, which say who owns it.
            log.warning("%s", error)
            return
        self._store.delete(_note_path(name))
        log.info("dropped the view %s", name)

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
