"""What can go wrong between the lakehouse and Trino, grouped by who is affected.

GamelakeError
├── TransientError           this round fails         StoreSilentError · TrinoSilentError
└── TableError               this table waits         RegistrationRefusedError · ViewRefusedError ·
                                                     UnreadableLogError
"""

from gamelake.model.errors import GamelakeError, TransientError


class StoreSilentError(TransientError):
    """The object store gave no answer, or not one that can be used."""


class TrinoSilentError(TransientError):
    """Trino gave no answer, or none that has to do with one table."""


class TableError(GamelakeError):
    """One table can't be served; the others can."""


class RegistrationRefusedError(TableError):
    """Trino does not take a table, or does not let it go."""


class ViewRefusedError(TableError):
    """A view is not as it should be: its file is malformed, or Trino does not take it."""


class UnreadableLogError(TableError):
    """A table's log can't be read."""
