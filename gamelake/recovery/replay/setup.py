"""Sets up a replay: tables, decoding, current rules, and a reader of records chosen by their size."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from gamelake.contract.games import load_games
from gamelake.delta.listing import games_of
from gamelake.delta.tables import DeltaTables
from gamelake.layers.comments import EventComments
from gamelake.ledger.held_tables import stream_tables
from gamelake.model.failpoints import Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store
from gamelake.quality.checking import CheckedRules
from gamelake.recovery.replay.execution import LocalReader, SparkReader
from gamelake.recovery.replay.replayer import RecordReader, Replayer
from gamelake.recovery.replay.selection import Selection
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.replay.task import ReplayPlan, ReplayReport
from gamelake.session import Sessions, own_session
from gamelake.streaming.rules import RulesLoader

log = event_logger(__name__)

# Decoded, these are a few hundred MiB, which one process handles in the time that Spark takes to start.
LOCAL_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class ReaderBySize:
    """Reads small selections in this process, and starts Spark for larger ones.

    Attributes:
        location: the lakehouse.
        sessions: starts a Spark session.
    """

    location: Location
    sessions: Sessions

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Run the plan on the selected records, and return a report for each task and chunk."""
        local = LocalReader(self.location)
        size = local.bytes(selection, plan.versions[selection.source])
        if size <= LOCAL_BYTES:
            return local.reports(selection, plan)
        log.info("source_read_by_spark", table=selection.source, bytes=size)
        with self.sessions() as spark:
            return SparkReader(spark, self.location).reports(selection, plan)


@contextmanager
def replayer(name: str, settings: ReplaySettings) -> Iterator[Replayer]:
    """Yield a replayer; its tables are closed at the end of the block.

    Args:
        name: name of the Spark application, which is started only for large selections.
        settings: the settings of the replay.

    Raises:
        ContractError: the games contract is invalid, or a rule can't be evaluated.
    """
    location = settings.tables.lakehouse.location
    with opened(
        settings, ReaderBySize(location, partial(own_session, name, location, settings.tables.spark_jars))
    ) as replays:
        yield replays


@contextmanager
def opened(settings: ReplaySettings, reader: RecordReader) -> Iterator[Replayer]:
    """Yield a replayer with a given reader; its tables are closed at the end of the block.

    Raises:
        ContractError: the games contract is invalid, or a rule can't be evaluated.
    """
    location = settings.tables.lakehouse.location
    store = Store(location)
    comments = EventComments(load_games(settings.tables.games_file), store)
    with stream_tables(location, comments) as tables:
        decoding = replace(settings.decoding(), rules=_rules(settings, store, tables))
        yield Replayer(reader, store, tables, decoding, Failpoints(settings.tables.kill), settings.windows)


def _rules(settings: ReplaySettings, store: Store, tables: DeltaTables) -> CheckedRules:
    """The current rules: replayed rows are evaluated like new ones."""
    games_file = settings.tables.games_file

    def schemas() -> dict[str, pa.Schema]:
        names = [game_table(game) for game in games_of(store)]
        return {name: schema for name in names if (schema := tables.schema(name)) is not None}

    return RulesLoader(settings.rules, games_file, load_games(games_file), store, schemas).watch().now()
