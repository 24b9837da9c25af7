"""The drills: each fault, and its recovery by the commands of docs/operations.md."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from gamelake.delta.log.codec import entry_path
from gamelake.delta.tables import open_table
from gamelake.ledger.generations import Generations
from tools.drill import bad_deploy
from tools.drill.cut_off_worker import CutOffWorker
from tools.drill.environment import STREAM, DrillEnvironment, DrillError
from tools.stack import COMPOSE, StackError, compose, containers, crash, run, run_job

ONE_SERVICE, WHOLE_STACK = timedelta(seconds=60), timedelta(seconds=90)
_RANDOM_KILLS, _LONGEST_PAUSE_SECONDS = 40, 10.0
# All whose restart policy starts them again, without those that only watch.
_MORTAL = frozenset(
    {
        "kafka",
        "registry",
        "postgres",
        "object-store",
        "ingest",
        "ingest-events",
        "spark-master",
        "spark-worker",
        "serving",
        "delivery",
        "audit",
        "trino",
        "catalog",
        "maintenance-scheduler",
    }
)
_DAMAGE = b'{"commitInfo": {"timesta'


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """One recovery.

    Attributes:
        description: the fault and the recovery, as printed.
        bound: time limit from the fault to the row of an event that is sent after it.
        strike: injects the fault; the clock starts when it returns.
        recover: recovers from the fault.
        keeps_playing: whether the game sends events meanwhile; not where these are lost, as documented.
        clean_up: restores the stack after the drill, also after one that failed; it is not part of the time.
    """

    name: str
    description: str
    bound: timedelta
    strike: Callable[[DrillEnvironment], None]
    recover: Callable[[DrillEnvironment], None]
    keeps_playing: bool = True
    clean_up: Callable[[DrillEnvironment], None] | None = None


def _deploy_a_bad_version(environment: DrillEnvironment) -> None:
    bad_deploy.prepare(environment)
    compose("stop", "ingest-events")
    bad_deploy.note_the_time(environment)
    compose("--file", str(bad_deploy.OVERLAY), "up", "--detach", "--no-deps", "ingest-events")
    environment.wait_for("a row in the wrong table", lambda: bad_deploy.has_wrong_rows(environment))


def _roll_back(environment: DrillEnvironment) -> None:
    compose("up", "--detach", "--no-deps", "ingest-events")
    run_job("maintenance", "restore", *bad_deploy.restore_arguments(environment))
    if bad_deploy.has_wrong_rows(environment):
        raise DrillError("the restored table still has rows of the wrong game")


def _lose_the_checkpoint(environment: DrillEnvironment) -> None:
    compose("kill", "ingest-events")
    generation = Generations(environment.store, STREAM).all()[-1]
    for path in environment.store.paths(generation.checkpoint):
        environment.store.delete(path)


def _rebuild_the_checkpoint(environment: DrillEnvironment) -> None:
    before = len(Generations(environment.store, STREAM).all())
    run_job("ingest-events", "rebuild_checkpoint")
    compose("start", "ingest-events")
    if len(Generations(environment.store, STREAM).all()) == before:
        raise DrillError("no new checkpoint generation was made")


def _lose_kafkas_disk(_: DrillEnvironment) -> None:
    project = containers()[0].project
    compose("rm", "--stop", "--force", "kafka")
    run(("docker", "volume", "rm", f"{project}_kafka"))


def _begin_on_a_new_disk(_: DrillEnvironment) -> None:
    # These streams have nothing to read: killing them loses nothing.
    compose("kill", "ingest-events", "serving")
    # The new Kafka gives new producers ids that running ones still use: it would take their records for repeated ones.
    compose("stop", "ingest")
    compose("up", "--detach", "--no-deps", "kafka")
    compose("up", "--no-deps", "create-topics")
    compose("start", "ingest")
    run_job("ingest-events", "rebuild_checkpoint", "--new-topic")
    notifications = ("--env", "GAMELAKE_STREAM=ingest_files", "--env", "GAMELAKE_TOPIC=files.notifications")
    run_job("ingest-events", "rebuild_checkpoint", "--new-topic", options=notifications)
    run_job("serving", "rebuild_checkpoint", "--new-topic", options=("--env", "GAMELAKE_STREAM=live_ops"))
    compose("start", "ingest-events", "serving")


def _delete_a_gold_table(environment: DrillEnvironment) -> None:
    for path in environment.store.paths(_gold(environment)):
        environment.store.delete(path)


def _wait_for_the_gold_table(environment: DrillEnvironment) -> None:
    location = environment.store.location
    environment.wait_for(
        "the gold table", lambda: open_table(location, _gold(environment)).to_pyarrow_table().num_rows > 0
    )


def _gold(environment: DrillEnvironment) -> str:
    return f"gold/{environment.game.name}_player_agg"


def _damage_a_log(environment: DrillEnvironment) -> None:
    version = open_table(environment.store.location, environment.game.table).version()
    environment.store.put(entry_path(environment.game.table, version), _DAMAGE)


def _repair_the_log(environment: DrillEnvironment) -> None:
    run_job("ingest-events", "repair_log", environment.game.table, "--yes")


def _kill_everything(_: DrillEnvironment) -> None:
    run(("docker", "kill", *(each.id for each in containers() if each.state == "running")))


def _kill_at_random(_: DrillEnvironment) -> None:
    """Kill one service after another, without waiting for the one before: several are down at times."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"  {_RANDOM_KILLS} kills by seed {seed}", flush=True)
    chance = random.Random(seed)
    for number in range(1, _RANDOM_KILLS + 1):
        time.sleep(chance.uniform(0, _LONGEST_PAUSE_SECONDS))
        running = sorted({each.service for each in containers() if each.state == "running" and each.service in _MORTAL})
        if not running:
            raise DrillError("no service runs any more: none was started again")
        victim = chance.choice(running)
        print(f"  kill {number}: {victim}", flush=True)
        # It may have died of an earlier kill just now.
        with suppress(StackError):
            crash(victim)


def _wait_for_restarts(_: DrillEnvironment) -> None:
    """Nothing to do: the restart policies start all services again."""


def _make_up(_: DrillEnvironment) -> None:
    minimal = [] if any(each.service == "prometheus" for each in containers()) else ["--minimal"]
    run((str(COMPOSE / "up.sh"), *minimal))


_worker = CutOffWorker()
DRILLS = (
    Drill(
        name="bad-deploy",
        description="a version of the ingest job writes a game's events to another game's table; it is rolled back, "
        "the tables are restored, and the events replayed from bronze",
        bound=ONE_SERVICE,
        strike=_deploy_a_bad_version,
        recover=_roll_back,
    ),
    Drill(
        name="lost-checkpoint",
        description="the ingest job is killed and its checkpoint deleted; it is rebuilt from the manifests",
        bound=ONE_SERVICE,
        strike=_lose_the_checkpoint,
        recover=_rebuild_the_checkpoint,
    ),
    Drill(
        name="corrupted-log",
        description="the newest entry of a silver table's log is truncated; it is rebuilt from its batch's manifest",
        bound=ONE_SERVICE,
        strike=_damage_a_log,
        recover=_repair_the_log,
    ),
    Drill(
        name="deleted-table",
        description="a gold table is deleted; the gold job rebuilds it",
        bound=ONE_SERVICE,
        strike=_delete_a_gold_table,
        recover=_wait_for_the_gold_table,
    ),
    Drill(
        name="lost-broker-disk",
        description="Kafka's disk is lost; topics and access rules are created again, streams continue on new topics",
        bound=ONE_SERVICE,
        strike=_lose_kafkas_disk,
        recover=_begin_on_a_new_disk,
        keeps_playing=False,
    ),
    Drill(
        name="cut-off-worker",
        description="one of three Spark workers loses its network in the middle of a batch; the others repeat its "
        "tasks, and it reconnects",
        bound=WHOLE_STACK,
        strike=_worker.strike,
        recover=_worker.wait_for_the_other_workers,
        clean_up=_worker.reconnect,
    ),
    Drill(
        name="random-kills",
        description=f"services are killed with SIGKILL at random, {_RANDOM_KILLS} times, some while others are down; "
        "all start again by themselves",
        bound=WHOLE_STACK,
        strike=_kill_at_random,
        recover=_wait_for_restarts,
    ),
    Drill(
        name="killed-stack",
        description="every container is killed with SIGKILL; make up starts all of them again",
        bound=WHOLE_STACK,
        strike=_kill_everything,
        recover=_make_up,
    ),
)
