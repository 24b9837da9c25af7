"""Errors between the lakehouse and Trino, grouped by their effect.

GamelakeError
├── TransientError           this run fails           StoreUnavailableError (gamelake/model) · TrinoUnavailableError
└── TableError               this table waits         RegistrationRefusedError · ViewRefusedError ·
                                                     UnreadableLogError
"""

from gamelake.model.errors import GamelakeError, TransientError


class TrinoUnavailableError(TransientError):
    """Trino is not available, or has an error that does not concern a single table."""


class TableError(GamelakeError):
    """An error of one table; the other tables are not affected."""


class RegistrationRefusedError(TableError):
    """Trino refuses to register or unregister a table."""


class ViewRefusedError(TableError):
    """A view's file is malformed, or Trino refuses the view."""


class UnreadableLogError(TableError):
    """A table's log can't be read."""
