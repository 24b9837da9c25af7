"""The drills: what is broken, and the commands of docs/operations.md that put it right."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from gamelake.storage.appends import entry_path
from gamelake.storage.generations import Generations
from gamelake.storage.tables import open_table
from tools.drill import bad_deploy
from tools.drill.environment import STREAM, DrillError, Ground
from tools.stack import COMPOSE, compose, containers, run, run_job

ONE_SERVICE, WHOLE_STACK = timedelta(seconds=60), timedelta(seconds=90)
_DAMAGE = b'{"commitInfo": {"timesta'


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """One recovery.

    Attributes:
        does: what is broken, and how it comes back, for who reads the screen.
        bound: from the fault to an event that is sent after it and is in its table.
        strike: breaks it; the clock starts when it is broken.
        recover: puts it right.
        plays_on: whether the game plays meanwhile; it doesn't where what it sends would be lost as documented.
    """

    name: str
    does: str
    bound: timedelta
    strike: Callable[[Ground], None]
    recover: Callable[[Ground], None]
    plays_on: bool = True


def _deploy_a_bad_version(ground: Ground) -> None:
    bad_deploy.prepare(ground)
    compose("stop", "ingest-events")
    bad_deploy.note_the_time(ground)
    compose("--file", str(bad_deploy.OVERLAY), "up", "--detach", "--no-deps", "ingest-events")
    ground.wait_for("a wrong row", lambda: bad_deploy.has_wrong_rows(ground))


def _roll_back(ground: Ground) -> None:
    compose("up", "--detach", "--no-deps", "ingest-events")
    run_job("maintenance", "restore", *bad_deploy.restore_arguments(ground))
    if bad_deploy.has_wrong_rows(ground):
        raise DrillError("the wrong rows are still there")


def _lose_the_checkpoint(ground: Ground) -> None:
    compose("kill", "ingest-events")
    generation = Generations(ground.store, STREAM).all()[-1]
    for path in ground.store.paths(generation.checkpoint):
        ground.store.delete(path)


def _rebuild_the_checkpoint(ground: Ground) -> None:
    before = len(Generations(ground.store, STREAM).all())
    run_job("ingest-events", "rebuild_checkpoint")
    compose("start", "ingest-events")
    if len(Generations(ground.store, STREAM).all()) == before:
        raise DrillError("no new checkpoint generation was made")


def _lose_kafkas_disk(_: Ground) -> None:
    project = containers()[0].project
    compose("rm", "--stop", "--force", "kafka")
    run(("docker", "volume", "rm", f"{project}_kafka"))


def _begin_on_a_new_disk(_: Ground) -> None:
    # They have nothing to read, and lose nothing however they end.
    compose("kill", "ingest-events", "serving")
    compose("up", "--detach", "--no-deps", "kafka")
    compose("up", "--no-deps", "create-topics")
    run_job("ingest-events", "rebuild_checkpoint", "--new-topic")
    notifications = ("--env", "GAMELAKE_STREAM=ingest_files", "--env", "GAMELAKE_TOPIC=files.notifications")
    run_job("ingest-events", "rebuild_checkpoint", "--new-topic", options=notifications)
    run_job("serving", "rebuild_checkpoint", "--new-topic", options=("--env", "GAMELAKE_STREAM=live_ops"))
    compose("start", "ingest-events", "serving")


def _delete_a_gold_table(ground: Ground) -> None:
    for path in ground.store.paths(_gold(ground)):
        ground.store.delete(path)


def _wait_for_the_gold_table(ground: Ground) -> None:
    location = ground.store.location
    ground.wait_for("the gold table", lambda: open_table(location, _gold(ground)).to_pyarrow_table().num_rows > 0)


def _gold(ground: Ground) -> str:
    return f"gold/{ground.game.name}_player_agg"


def _damage_a_log(ground: Ground) -> None:
    version = open_table(ground.store.location, ground.game.table).version()
    ground.store.put(entry_path(ground.game.table, version), _DAMAGE)


def _mend_the_log(ground: Ground) -> None:
    run_job("ingest-events", "repair_log", ground.game.table, "--yes")


def _kill_everything(_: Ground) -> None:
    run(("docker", "kill", *(each.id for each in containers() if each.state == "running")))


def _make_up(_: Ground) -> None:
    minimal = [] if any(each.service == "prometheus" for each in containers()) else ["--minimal"]
    run((str(COMPOSE / "up.sh"), *minimal))


DRILLS = (
    Drill(
        name="bad-deploy",
        does="a version of the ingest job writes a game's events to another's table; it is rolled back, the tables set "
        "back, and the events brought back from bronze",
        bound=ONE_SERVICE,
        strike=_deploy_a_bad_version,
        recover=_roll_back,
    ),
    Drill(
        name="lost-checkpoint",
        does="the ingest job is killed and its checkpoint deleted; it is rebuilt from the manifests",
        bound=ONE_SERVICE,
        strike=_lose_the_checkpoint,
        recover=_rebuild_the_checkpoint,
    ),
    Drill(
        name="corrupted-log",
        does="the newest entry of a silver table's log is cut off; it is written anew from its batch's manifest",
        bound=ONE_SERVICE,
        strike=_damage_a_log,
        recover=_mend_the_log,
    ),
    Drill(
        name="deleted-table",
        does="a gold table is deleted; gold makes it again",
        bound=ONE_SERVICE,
        strike=_delete_a_gold_table,
        recover=_wait_for_the_gold_table,
    ),
    Drill(
        name="lost-broker-disk",
        does="Kafka and its disk are gone; topics and rights are made again, the streams go on with the new topic",
        bound=ONE_SERVICE,
        strike=_lose_kafkas_disk,
        recover=_begin_on_a_new_disk,
        plays_on=False,
    ),
    Drill(
        name="killed-stack",
        does="every container is killed by SIGKILL; make up brings all back",
        bound=WHOLE_STACK,
        strike=_kill_everything,
        recover=_make_up,
    ),
)
