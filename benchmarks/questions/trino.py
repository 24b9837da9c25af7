"""Queries to Trino as an analyst, on temporary tables of the benchmark instead of the platform's."""

import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from trino.dbapi import connect
from trino.exceptions import TrinoQueryError


@dataclass(frozen=True, slots=True)
class QuestionClient:
    """A client of the Trino at `url`."""

    url: str

    def ask(self, sql: str, user: str) -> list[list[Any]]:
        """Run a query; returns the rows.

        Raises:
            TrinoQueryError: the query failed.
        """
        parts = urlsplit(self.url)
        connection = connect(  # type: ignore[no-untyped-call] # it takes anything
            host=parts.hostname, port=parts.port, http_scheme=parts.scheme, user=user, catalog="delta",
            source="gamelake-benchmarks",
        )  # fmt: skip
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            return [list(row) for row in cursor.fetchall()]
        finally:
            connection.close()

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
