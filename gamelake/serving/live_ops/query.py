"""The running query of live operations: assembled from settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from gamelake.contract.games import load_games
from gamelake.delta.listing import games_of
from gamelake.layers.comments import EventComments
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import game_table, state_folder
from gamelake.objects.store import Store
from gamelake.schemas.compiler import ROOT_FILE, compile_sources
from gamelake.schemas.event_schemas import register_text
from gamelake.serving.live_ops.decider import LiveOpsDecider
from gamelake.serving.live_ops.plan import Publication, StatePlan
from gamelake.serving.live_ops.publishing import Publisher
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.serving.live_ops.signals.detector import Detector
from gamelake.serving.live_ops.signals.observers import JudgementObserver
from gamelake.serving.live_ops.signals.watch_tables import recall
from gamelake.serving.live_ops.signals.watching import Watching
from gamelake.serving.live_ops.states.maintenance import ErasedPlayers, StateKeeper
from gamelake.serving.live_ops.states.player_table import PlayerStateTable
from gamelake.serving.live_ops.states.refreshing import Refresher
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.decision import Parallelism
from gamelake.streaming.driver.flood import FloodBreaker
from gamelake.streaming.driver.observers import BatchObserver
from gamelake.streaming.driver.runner import careful_decider
from gamelake.streaming.message_mapping import load_event_contract
from gamelake.streaming.plan import ChunkLimits, TaskPlan

_SCHEMAS = Path(__file__).parents[3] / "contracts" / "proto" / "live_ops" / "v1"
PLAYER_STATE_PROTO, SIGNAL_PROTO = _SCHEMAS / "player_state.proto", _SCHEMAS / "signal.proto"


@dataclass(frozen=True, slots=True)
class LiveOps:
    """The parts of the query.

    Attributes:
        body: the function that Spark calls with each batch.
        keeper: the state from batch to batch.
        detector: judges the minutes.
    """

    body: FanOut[StatePlan]
    keeper: StateKeeper
    detector: Detector


def live_ops(
    settings: LiveOpsSettings,
    source: OpenStream,
    spark: SparkSession,
    detector: Detector,
    observer: JudgementObserver,
    batch_observers: Sequence[BatchObserver] = (),
) -> LiveOps:
    """Assemble the query on an open stream, and find its state.

    Args:
        settings: the settings of the job.
        source: the open stream.
        spark: the session that runs the tasks. Its adaptive execution is switched off.
        detector: judges the minutes; learns the former ones from the tables.
        observer: is notified of each judgement.
        batch_observers: are notified of each batch.

    Raises:
        ContractError: the games contract is invalid.
        RegistryUnavailableError: the registry did not accept a schema.
        StoreError: a file of the state is gone.
    """
    # A batch has two small stages; replanning them while they run takes longer than it saves.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    reading, failpoints, store = settings.reading, Failpoints(settings.reading.kill), source.stream.store
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
    careful, breaker = careful_decider(decider, source), FloodBreaker(reading.flood)
    body = FanOut(source, careful, breaker, failpoints, keeper, observers=batch_observers)
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
    """Plan how the tasks read: like those of the fan-out, with the current columns of the games' tables."""
    reading = settings.reading
    contract = load_event_contract(reading.games_file)
    names = [game_table(game) for game in games_of(store)]
    schemas = source.tables.schemas(names)
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
    """Register a schema for a topic, and return the topic to publish to.

    Args:
        settings: the settings of the job.
        topic: the topic's name.
        schema: the `.proto` file.

    Raises:
        RegistryUnavailableError: the registry did not accept the schema.
    """
    text = schema.read_text(encoding="utf-8")
    registry_url, writer = settings.reading.registry_url, settings.registry_writer
    schema_id = register_text(text, registry_url=registry_url, topic=topic, writer=writer)
    descriptors = compile_sources({ROOT_FILE: text}).SerializeToString()
    return Publication(settings.reading.kafka, topic, schema_id, descriptors)
