"""The running query of live operations: assembled from settings."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from gamelake.contracts.games import load_games
from gamelake.failpoints import Failpoints
from gamelake.fanout.batch import FanOut, OpenStream
from gamelake.fanout.decision import Parallelism
from gamelake.fanout.flood import FloodBreaker
from gamelake.fanout.plan import ChunkLimits, TaskPlan
from gamelake.lake.listing import games_of
from gamelake.lake.store import Store
from gamelake.live_ops.deciding import LiveOpsDecider
from gamelake.live_ops.detector import Detector
from gamelake.live_ops.forgotten import Forgotten
from gamelake.live_ops.keeping import Keeper
from gamelake.live_ops.plan import Publication, StatePlan
from gamelake.live_ops.player_table import PlayerTable
from gamelake.live_ops.publishing import Publisher
from gamelake.live_ops.refreshing import Refresher
from gamelake.live_ops.telling import Telling
from gamelake.live_ops.watch_tables import recall
from gamelake.live_ops.watching import Watching
from gamelake.naming import game_table, state_folder
from gamelake.settings.live_ops import LiveOpsSettings
from gamelake.silver.comments import EventComments
from gamelake.wire.compiler import ROOT_FILE, compile_sources
from gamelake.wire.event_schemas import register_text

_SCHEMAS = Path(__file__).parents[2] / "contracts" / "proto" / "live_ops" / "v1"
PLAYER_STATE_PROTO, SIGNAL_PROTO = _SCHEMAS / "player_state.proto", _SCHEMAS / "signal.proto"


@dataclass(frozen=True, slots=True)
class LiveOps:
    """The parts of the query: what Spark calls with each batch, the state behind it, and the detector."""

    body: FanOut[StatePlan]
    keeper: Keeper
    detector: Detector


def live_ops(
    settings: LiveOpsSettings,
    source: OpenStream,
    store: Store,
    spark: SparkSession,
    detector: Detector,
    telling: Telling,
) -> LiveOps:
    """Assemble the query on an open stream, and find its state.

    Raises:
        ContractError: the games contract is impossible.
        RegistryUnavailableError: the registry took no schema.
    """
    # A batch has two small stages: planning them anew while they run takes longer than it saves.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    reading, failpoints = settings.reading, Failpoints(settings.reading.kill)
    plan = _task_plan(settings, source, store)
    watching = Watching(detector, int(settings.minute_patience.total_seconds() * 1_000_000))
    keeper = _keeper(settings, source, store, watching, Refresher(spark, store, _table(settings, store), failpoints))
    recall(store, detector)
    keeper.resume(source.stream.manifests)
    decider = LiveOpsDecider(
        reading=plan,
        players=publication(settings, settings.player_topic, PLAYER_STATE_PROTO),
        parallelism=Parallelism(spark.sparkContext.defaultParallelism, reading.records_per_task),
        watching=watching,
        signals=Publisher(publication(settings, settings.signal_topic, SIGNAL_PROTO)),
        telling=telling,
    )
    body = FanOut(source, decider, FloodBreaker(reading.flood), failpoints, keeper)
    return LiveOps(body, keeper, detector)


def _table(settings: LiveOpsSettings, store: Store) -> PlayerTable:
    comments = EventComments(load_games(settings.reading.games_file), store)
    return PlayerTable(store, state_folder(settings.reading.stream), comments)


def _keeper(
    settings: LiveOpsSettings, source: OpenStream, store: Store, watching: Watching, refresher: Refresher
) -> Keeper:
    games = tuple(game.name for game in load_games(settings.reading.games_file).games)
    return Keeper(
        store=store,
        folder=state_folder(settings.reading.stream),
        seed=source.generation.query_id,
        shares=settings.tasks,
        every=settings.table_interval,
        watching=watching,
        forgotten=Forgotten(store, games, source.generation.query_id),
        refresher=refresher,
    )


def _task_plan(settings: LiveOpsSettings, source: OpenStream, store: Store) -> TaskPlan:
    """How the tasks read: as those of the fan-out, by the columns that the games' tables have now."""
    reading = settings.reading
    contract = load_games(reading.games_file)
    names = [game_table(game) for game in games_of(store)]
    schemas = {name: schema for name in names if (schema := source.tables.schema(name)) is not None}
    return TaskPlan(
        lakehouse=reading.lakehouse.location,
        registry_url=reading.registry_url,
        topic=reading.topic,
        contract=contract,
        schemas=schemas,
        unlisted_tables=frozenset(schemas.keys() - {game.table for game in contract.games}),
        schema_wait=reading.schema_wait,
        chunk=ChunkLimits(records=reading.chunk_records),
    )


def publication(settings: LiveOpsSettings, topic: str, schema: Path) -> Publication:
    """A topic whose schema the registry has now.

    Raises:
        RegistryUnavailableError: the registry took no schema.
    """
    text = schema.read_text(encoding="utf-8")
    schema_id = register_text(text, registry_url=settings.reading.registry_url, topic=topic)
    descriptors = compile_sources({ROOT_FILE: text}).SerializeToString()
    return Publication(settings.reading.kafka, topic, schema_id, descriptors)
