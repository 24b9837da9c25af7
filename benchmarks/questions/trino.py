"""Queries to Trino as an analyst, on temporary tables of the benchmark instead of the platform's."""

import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from trino.exceptions import TrinoQueryError

from gamelake.trino import TrinoAccess
from tools import stack


@dataclass(frozen=True, slots=True)
class QuestionClient:
    """A client of the stack's Trino, or of the one at `url`, which has no passwords."""

    url: str = ""

    def _access(self, user: str) -> TrinoAccess:
        return TrinoAccess.parse(self.url, user) if self.url else stack.trino(user)

    def ask(self, sql: str, user: str) -> list[list[Any]]:
        """Run a query; returns the rows.

        Raises:
            TrinoQueryError: the query failed.
        """
        return self._access(user).query(sql, "gamelake-benchmarks").rows

    def seconds(self, sql: str, user: str) -> float:
        """Seconds of a query until its last row.

        Raises:
            TrinoQueryError: the query failed.
        """
        started = time.perf_counter()
        self.ask(sql, user)
        return time.perf_counter() - started

    @contextmanager
    def naming(self, place: str, tables: Collection[str]) -> Iterator[Mapping[str, str]]:
        """Register tables under a location with new names; they are unregistered at the end of the block."""
        prefix = f"gold.bench_{uuid.uuid4().hex[:8]}"
        names = {table: f"{prefix}_{table.replace('.', '_')}" for table in sorted(tables)}
        self.ask("CREATE SCHEMA IF NOT EXISTS gold", "catalog")
        try:
            for table, name in names.items():
                path = f"{place}/{table.replace('.', '/', 1)}"
                self.ask(f"CALL system.register_table('gold', '{name.removeprefix('gold.')}', '{path}')", "catalog")
            yield names
        finally:
            for name in names.values():
                with suppress(TrinoQueryError):
                    self.ask(f"CALL system.unregister_table('gold', '{name.removeprefix('gold.')}')", "catalog")
