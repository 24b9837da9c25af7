"""Keeps the figures of all tables, and tells when another table stands at a table's place."""

import logging
from collections.abc import Callable, Mapping

from services.catalog.errors import TableError
from services.catalog.figures import LogReader, TableFigures
from services.catalog.tables import Table

log = logging.getLogger(__name__)


class Measuring:
    """The tables' figures from look to look."""

    def __init__(self, reader: LogReader, on_replaced: Callable[[Table], None]) -> None:
        self._reader = reader
        self._on_replaced = on_replaced
        self._figures: dict[Table, TableFigures] = {}

    @property
    def figures(self) -> Mapping[Table, TableFigures]:
        """What was measured last."""
        return self._figures

    def measure(self, tables: frozenset[Table]) -> list[TableError]:
        """Bring the figures of these tables up to date, and drop those of others.

        Returns:
            What was wrong with single tables; they keep their last figures.
        """
        for gone in self._figures.keys() - tables:
            del self._figures[gone]
        errors = []
        for table in sorted(tables):
            try:
                self._measure(table)
            except TableError as error:
                log.warning("%s", error)
                errors.append(error)
        return errors

    def _measure(self, table: Table) -> None:
        figures = self._figures.get(table)
        if figures is not None and self._reader.follow(table, figures):
            return
        opened = self._reader.open(table)
        if figures is not None and opened.table_id != figures.table_id:
            log.info("%s was dropped and made again", table)
            self._on_replaced(table)
        self._figures[table] = opened
