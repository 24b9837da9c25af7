"""An engineer's desk: a Spark session, and the lakehouse's tables, history, batches and lineage as Spark sees them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from gamelake.model.errors import SettingsError
from gamelake.observability.lineage.graph import Graph
from gamelake.observability.lineage.recorded import recorded
from gamelake.session import spark_session
from gamelake.storage.delta_log import live_files
from gamelake.storage.listing import table_paths
from gamelake.storage.manifests import BatchManifest, Manifests
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import open_table
from notebooks.settings import NotebookSettings


@dataclass(frozen=True, slots=True)
class Desk:
    """What an engineer's notebook works with."""

    spark: SparkSession
    lakehouse: Location

    @classmethod
    def open(cls) -> "Desk":
        """A desk with a session of its own.

        Raises:
            SettingsError: no lakehouse is named, or the folder of jars has none.
        """
        settings = NotebookSettings.from_env()
        if settings.lakehouse is None:
            raise SettingsError("GAMELAKE_LAKEHOUSE is not set: it says where the tables are")
        spark = spark_session("notebook", settings.lakehouse, settings.spark_jars)
        # What is looked at here fits in a few tasks; the default of 200 is most of an answer's time.
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
        """A table's rows, now or as they were."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.lakehouse.child(table))

    def sizes(self, tables: Sequence[str]) -> pd.DataFrame:
        """How large tables are, by what their logs say of their files."""
        files = [live_files(open_table(self.lakehouse, table)) for table in tables]
        bytes_of = [sum(file.size for file in each) for each in files]
        return pd.DataFrame({"files": map(len, files), "bytes": bytes_of}, index=pd.Index(tables, name="table"))

    def history(self, table: str) -> pd.DataFrame:
        """A table's versions, oldest first, with what their commits say of themselves."""
        found = self.spark.sql(f"DESCRIBE HISTORY delta.`{self.lakehouse.child(table)}`")
        chosen = pd.DataFrame(found.select("version", "timestamp", "operation", "operationMetrics").toPandas())
        return chosen.sort_values("version").reset_index(drop=True)

    def batches(self, stream: str = "ingest_events", newest: int = 200) -> list[BatchManifest]:
        """What the newest batches of a stream decided."""
        return Manifests(self.store, stream).last(newest)

    def lineage(self) -> Graph:
        """What leads to what, as the jobs have told."""
        return Graph.of(recorded(self.store))
