"""The views of `sql/views`: one file each, with what each column means; a view over all games is written for one."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from gamelake.model.errors import QuestionError
from gamelake.model.games import GameSpec
from gamelake.serving.sql.dialects import columns_of, names_in

_COLUMN = re.compile(r"^-- Column ([a-z][a-z0-9_]*): (.+)$", re.MULTILINE)
_GRAIN, _FOR_EACH_GAME = "-- Grain: ", "-- For each game:"
_GAME, _GAME_NAME = "{game}", "{game_name}"
# Any name will do to read a statement that is written for one game.
_ANY_GAME = "any_game"


@dataclass(frozen=True, slots=True)
class View:
    """A view by its name `schema.view`; its SQL may have places for a game."""

    name: str
    comment: str
    columns: tuple[tuple[str, str], ...]
    sql: str

    @property
    def is_for_each_game(self) -> bool:
        """Whether the view is one statement for each game, put together."""
        return _GAME in self.sql

    def undescribed(self) -> set[str]:
        """The columns of which the file does not say what they mean, and those that it describes and has not."""
        return set(columns_of(self.sql.replace(_GAME, _ANY_GAME))) ^ {name for name, _ in self.columns}

    def over(self, games: Sequence[GameSpec], there: Collection[str]) -> str | None:
        """The view's statement over the tables and views that are there; None while one that it needs is not."""
        if not self.is_for_each_game:
            return self.sql if names_in(self.sql) <= set(there) else None
        parts = [sql for sql in (self._of(game) for game in games) if names_in(sql) <= set(there)]
        return "\nUNION ALL\n".join(parts) or None

    def _of(self, game: GameSpec) -> str:
        return self.sql.replace(_GAME_NAME, game.game_name.replace("'", "''")).replace(_GAME, game.name)


def load_views(folder: Path) -> tuple[View, ...]:
    """The views under a folder, `<schema>/<view>.sql`, each after those that it reads.

    Raises:
        QuestionError: a file's first lines don't say what they should, or views read each other in a circle.
    """
    views = {view.name: view for view in map(_load, sorted(folder.glob("*/*.sql")))}
    ordered: list[View] = []
    while len(ordered) < len(views):
        done = {view.name for view in ordered}
        ready = [view for view in views.values() if view.name not in done and not _reads(view, views) - done]
        if not ready:
            raise QuestionError(f"views of {folder} read each other: {', '.join(sorted(set(views) - done))}")
        ordered += ready
    return tuple(ordered)


def _reads(view: View, views: Collection[str]) -> set[str]:
    return {name for name in names_in(view.sql.replace(_GAME, _ANY_GAME)) if name in views}


def _load(path: Path) -> View:
    text = path.read_text(encoding="utf-8")
    first, grain, *_ = [*text.splitlines(), "", ""]
    columns = tuple(_COLUMN.findall(text))
    if not first.startswith("-- ") or not grain.startswith(_GRAIN) or not columns:
        raise QuestionError(
            f"{path}: it must open with what it is, '{_GRAIN}' and a '-- Column name: meaning' for each"
        )
    sql = "\n".join(line for line in text.splitlines() if not line.startswith("-- "))
    if (_GAME in sql) != (_FOR_EACH_GAME in text):
        raise QuestionError(f"{path}: a view for each game has '{_FOR_EACH_GAME}' above and {_GAME} in its statement")
    comment = f"{first.removeprefix('-- ')} {grain.removeprefix('-- ')}"
    return View(f"{path.parent.name}.{path.stem}", comment, columns, sql)
