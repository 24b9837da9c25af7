"""A lakehouse in a bucket of a test's own, and the real ingest job as a child process."""

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from gamelake.objects.store import Location, Store
from tests.embedded.lakehouse import Lakehouse
from tests.stack.object_store import ObjectStore


@dataclass(slots=True)
class Services:
    """Where the job finds its records and its schemas."""

    bootstrap_servers: str
    registry_url: str
    topic: str


@dataclass(slots=True)
class S3Lakehouse(Lakehouse):
    """Tables in a bucket, fed by a topic; what the job says stands in a folder."""

    location: Location = field(kw_only=True)

    @classmethod
    def on(cls, store: ObjectStore, uri: str, folder: Path, services: Services) -> "S3Lakehouse":
        """An empty one, reached through a store's address with that store's keys."""
        return cls(
            folder,
            services.bootstrap_servers,
            services.registry_url,
            services.topic,
            settings=store.variables(uri),
            location=store.location(uri),
        )

    def jobs_go_through(self, endpoint: str) -> None:
        """Have jobs reach the store by another address; the test itself still reads it directly.

        It must where the address is a proxy in the test's own process: delta-rs holds Python's lock while it looks for
        a table, and would wait for ever for the thread that is to answer.
        """
        self.settings["GAMELAKE_S3_ENDPOINT"] = endpoint

    @property
    def store(self) -> Store:
        return Store(self.location)

    def rows(self, table: str, *columns: str) -> pa.Table:
        """A table's rows now; none if it does not exist."""
        path, options = self.location.child(table), dict(self.location.options)
        if not DeltaTable.is_deltatable(path, options):
            return pa.table({column: pa.nulls(0) for column in columns})
        return DeltaTable(path, storage_options=options).to_pyarrow_table(columns=list(columns) or None)
