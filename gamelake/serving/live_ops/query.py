"""The running query of live operations: assembled from settings."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from gamelake.layers.comments import EventComments
from gamelake.model.failpoints import Failpoints
from gamelake.model.games import load_games
from gamelake.model.naming import game_table, state_folder
from gamelake.schemas.compiler import ROOT_FILE, compile_sources
from gamelake.schemas.event_schemas import register_text
from gamelake.serving.live_ops.decider import LiveOpsDecider
from gamelake.serving.live_ops.detector import Detector
from gamelake.serving.live_ops.maintenance import ErasedPlayers, StateKeeper
from gamelake.serving.live_ops.observers import JudgementObserver
from gamelake.serving.live_ops.plan import Publication, StatePlan
from gamelake.serving.live_ops.player_table import PlayerStateTable
from gamelake.serving.live_ops.publishing import Publisher
from gamelake.serving.live_ops.refreshing import Refresher
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.serving.live_ops.watch_tables import recall
from gamelake.serving.live_ops.watching import Watching
from gamelake.storage.listing import games_of
from gamelake.storage.store import Store
from gamelake.streaming.batch import FanOut, OpenStream
from gamelake.streaming.decision import Parallelism
from gamelake.streaming.flood import FloodBreaker
from gamelake.streaming.message_mapping import load_event_contract
from gamelake.streaming.plan import ChunkLimits, TaskPlan

_SCHEMAS = Path(__file__).parents[3] / "contracts" / "proto" / "live_ops" / "v1"
PLAYER_STATE_PROTO, SIGNAL_PROTO = _SCHEMAS / "player_state.proto", _SCHEMAS / "signal.proto"


@dataclass(frozen=True, slots=True)
class LiveOps:
    """The parts of the query: what Spark calls with each batch, the state behind it, and the detector."""

    body: FanOut[StatePlan]
    keeper: StateKeeper
    detector: Detector


def live_ops(
    settings: LiveOpsSettings,
    source: OpenStream,
    store: Store,
    spark: SparkSession,
    detector: Detector,
    observer: JudgementObserver,
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
        observer=observer,
    )
    body = FanOut(source, decider, FloodBreaker(reading.flood), failpoints, keeper)
    return LiveOps(body, keeper, detector)


def _table(settings: LiveOpsSettings, store: Store) -> PlayerStateTable:
    comments = EventComments(load_games(settings.reading.games_file), store)
    return PlayerStateTable(store, state_folder(settings.reading.stream), comments)


def _keeper(
    settings: LiveOpsSettings, source: OpenStream, store: Store, watching: Watching, refresher: Refresher
) -> StateKeeper:
    games = tuple(game.name for game in load_games(settings.reading.games_file).games)
    return StateKeeper(
        store=store,
        folder=state_folder(settings.reading.stream),
        seed=source.generation.query_id,
        shares=settings.tasks,
        every=settings.table_interval,
        watching=watching,
        forgotten=ErasedPlayers(store, games, source.generation.query_id),
        refresher=refresher,
    )


def _task_plan(settings: LiveOpsSettings, source: OpenStream, store: Store) -> TaskPlan:
    """How the tasks read: as those of the fan-out, by the columns that the games' tables have now."""
    reading = settings.reading
    contract = load_event_contract(reading.games_file)
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
        schema_limits=reading.schema_limits,
        chunk=ChunkLimits(records=reading.chunk_records),
    )


def publication(settings: LiveOpsSettings, topic: str, schema: Path) -> Publication:
    """A topic whose schema the registry has now.

    Raises:
        RegistryUnavailableError: the registry took no schema.
    """
    text = schema.read_text(encoding="utf-8")
    registry_url, writer = settings.reading.registry_url, settings.registry_writer
    schema_id = register_text(text, registry_url=registry_url, topic=topic, writer=writer)
    descriptors = compile_sources({ROOT_FILE: text}).SerializeToString()
    return Publication(settings.reading.kafka, topic, schema_id, descriptors)
