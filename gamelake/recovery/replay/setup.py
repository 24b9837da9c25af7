"""Opens what a replay needs: the tables, how to decode, and what reads the records, by how many there are."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from gamelake.layers.comments import EventComments
from gamelake.model.failpoints import Failpoints
from gamelake.model.games import load_games
from gamelake.model.naming import game_table
from gamelake.quality.checking import CheckedRules
from gamelake.recovery.replay.execution import LocalReader, SparkReader
from gamelake.recovery.replay.replayer import RecordReader, Replayer
from gamelake.recovery.replay.selection import Selection
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.replay.task import ReplayPlan, ReplayReport
from gamelake.session import Sessions, own_session
from gamelake.storage.listing import games_of
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.rules import RulesLoader

log = logging.getLogger(__name__)

# Decoded, these are some hundreds of MiB; one process takes them in the time that Spark takes to start.
HERE_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class ReaderBySize:
    """Reads here what is small, and starts Spark for what is not."""

    location: Location
    sessions: Sessions

    def reports(self, selection: Selection, plan: ReplayPlan) -> tuple[ReplayReport, ...]:
        """Read a selection, do what the plan says."""
        here = LocalReader(self.location)
        size = here.bytes(selection, plan.versions[selection.source])
        if size <= HERE_BYTES:
            return here.reports(selection, plan)
        log.info("%d MiB of %s are read by Spark", size >> 20, selection.source)
        with self.sessions() as spark:
            return SparkReader(spark, self.location).reports(selection, plan)


@contextmanager
def replayer(name: str, settings: ReplaySettings) -> Iterator[Replayer]:
    """What replays, in a Spark application of that name where it takes one, until the end of the block."""
    location = settings.tables.lakehouse.location
    with opened(
        settings, ReaderBySize(location, partial(own_session, name, location, settings.tables.spark_jars))
    ) as replays:
        yield replays


@contextmanager
def opened(settings: ReplaySettings, reader: RecordReader) -> Iterator[Replayer]:
    """What replays with a reader of its own, until the end of the block.

    Raises:
        ContractError: the games contract is impossible, or a rule can't be evaluated.
    """
    location = settings.tables.lakehouse.location
    store = Store(location)
    comments = EventComments(load_games(settings.tables.games_file), store)
    with DeltaTables(location, comments) as tables:
        decoding = replace(settings.decoding(), rules=_rules(settings, store, tables))
        yield Replayer(reader, store, tables, decoding, Failpoints(settings.tables.kill))


def _rules(settings: ReplaySettings, store: Store, tables: DeltaTables) -> CheckedRules:
    """Today's rules: what a replay brings back is judged like what comes new."""
    games_file = settings.tables.games_file

    def schemas() -> dict[str, pa.Schema]:
        names = [game_table(game) for game in games_of(store)]
        return {name: schema for name in names if (schema := tables.schema(name)) is not None}

    return RulesLoader(settings.rules, games_file, load_games(games_file), store, schemas).watch().now()
