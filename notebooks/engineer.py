"""Spark for the engineer's notebook: tables of the lakehouse with their history, batches and lineage."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from gamelake.delta.listing import table_paths
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.errors import SettingsError
from gamelake.objects.store import Location, Store
from gamelake.observability.lineage.graph import Graph
from gamelake.observability.lineage.recorded import recorded
from gamelake.session import spark_session
from notebooks.settings import NotebookSettings


@dataclass(frozen=True, slots=True)
class EngineerSession:
    """The interface of the engineer's notebook."""

    spark: SparkSession
    lakehouse: Location

    @classmethod
    def open(cls) -> "EngineerSession":
        """A session with a new Spark session.

        Raises:
            SettingsError: GAMELAKE_LAKEHOUSE is not set, or the folder of jars is empty.
        """
        settings = NotebookSettings.from_env()
        if settings.lakehouse is None:
            raise SettingsError("GAMELAKE_LAKEHOUSE is not set: it says where the tables are")
        spark = spark_session("notebook", settings.lakehouse, settings.spark_jars)
        # The results are small: the default of 200 partitions would take most of the time.
        spark.conf.set("spark.sql.shuffle.partitions", "4")
        return cls(spark, settings.lakehouse)

    @property
    def store(self) -> Store:
        """The lakehouse's objects."""
        return Store(self.lakehouse)

    def tables(self) -> list[str]:
        """The tables, by their paths in the lakehouse."""
        return table_paths(self.store)

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """A table's rows, of the newest or of an earlier version."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.lakehouse.child(table))

    def sizes(self, tables: Sequence[str]) -> pd.DataFrame:
        """Sizes of tables, from the files in their logs."""
        files = [live_files(open_table(self.lakehouse, table)) for table in tables]
        bytes_of = [sum(file.size for file in each) for each in files]
        return pd.DataFrame({"files": map(len, files), "bytes": bytes_of}, index=pd.Index(tables, name="table"))

    def history(self, table: str) -> pd.DataFrame:
        """A table's versions, oldest first, with operation and metrics of their commits."""
        found = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.lakehouse.child(table)}`")
        chosen = pd.DataFrame(found.select("version", "timestamp", "operation", "operationMetrics").toPandas())
        return chosen.sort_values("version").reset_index(drop=True)

    def batches(self, stream: str = "ingest_events", newest: int = 200) -> list[BatchManifest]:
        """The manifests of the newest batches of a stream."""
        return Manifests(self.store, stream).last(newest)

    def lineage(self) -> Graph:
        """The recorded lineage of all tables."""
        return Graph.of(recorded(self.store))
