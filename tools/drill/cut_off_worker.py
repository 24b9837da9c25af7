"""A Spark worker that loses its network in the middle of a batch, and comes back while its tasks are done by others."""

import json
import time
from dataclasses import dataclass

import msgspec

from tools.drill.environment import DrillEnvironment, DrillError
from tools.embedded.service import REPOSITORY
from tools.stack import compose, containers, page, run, settings

WORKERS = 3
_FOLDER = REPOSITORY / "build" / "drill"
_OVERLAY = _FOLDER / "cut-off-worker.yaml"
_RATE, _SECONDS_OF_LOAD, _GAMES = 3_000, 300, 10
# A batch of two seconds of the load then has tasks for all workers.
_RECORDS_PER_TASK = 1_000
_ATTEMPTS = 20
_POLL_SECONDS = 0.1
# A task of a worker that is still connected ends, and is reported, within this time.
_SURE_SECONDS = 3.0
# Sets or clears IFF_UP of the interface; the images have no `ip`. netdevice(7) has the calls.
_SWITCH = """
import fcntl, socket, struct, sys
GET, SET, UP = 0x8913, 0x8914, 1
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    request = struct.pack("16sh14x", b"eth0", 0)
    flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, GET, request))[1]
    flags = flags | UP if sys.argv[1] == "up" else flags & ~UP
    fcntl.ioctl(any_socket, SET, struct.pack("16sh14x", b"eth0", flags))
"""


class Executor(msgspec.Struct, rename="camel"):
    """The description of an executor in Spark's REST API."""

    id: str
    host_port: str
    active_tasks: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class _Cable:
    """The network of a worker's container, switched off and on by a helper container in the same network namespace."""

    worker: str
    helper: str

    @classmethod
    def of(cls, worker: str) -> "_Cable":
        """The network of a container, by its id."""
        image = f"gamelake/spark:{settings()['GAMELAKE_TAG']}"
        rights = ("--user", "0", "--cap-drop", "ALL", "--cap-add", "NET_ADMIN")
        # It ends by itself, whatever becomes of the drill.
        lifetime = ("--entrypoint", "sleep", image, str(2 * _SECONDS_OF_LOAD))
        helper = run(("docker", "run", "--detach", "--rm", "--network", f"container:{worker}", *rights, *lifetime))
        return cls(worker, helper.strip())

    def switch(self, state: str) -> None:
        """Switch the network `up` or `down`."""
        run(("docker", "exec", self.helper, "python", "-c", _SWITCH, state))


class CutOffWorker:
    """The fault: three workers under load, of which one is cut off while it has tasks of a batch."""

    def __init__(self) -> None:
        self._cables: list[_Cable] = []
        self._load = ""

    def strike(self, environment: DrillEnvironment) -> None:
        """Start the workers and the load, and cut one worker off while it has a task.

        Raises:
            DrillError: no worker had a task at the time it was cut off, in some attempts.
        """
        self._start_workers(environment)
        self._load = _start_load()
        for _ in range(_ATTEMPTS):
            if self._cut_one_off(environment):
                return
        raise DrillError(f"no worker was cut off with a task in {_ATTEMPTS} attempts")

    def _start_workers(self, environment: DrillEnvironment) -> None:
        _FOLDER.mkdir(parents=True, exist_ok=True)
        # Workers of one service would share a volume: each gets a disk of its own.
        overlay = {
            "spark-worker": {"volumes": ["/var/lib/spark"]},
            "ingest-events": {"environment": {"GAMELAKE_RECORDS_PER_TASK": str(_RECORDS_PER_TASK)}},
        }
        _OVERLAY.write_bytes(msgspec.yaml.encode({"services": overlay}))
        changed = ("--file", str(_OVERLAY), "up", "--detach", "--no-deps")
        compose(*changed, "--scale", f"spark-worker={WORKERS}", "spark-worker")
        compose(*changed, "--scale", f"spark-worker={WORKERS}", "ingest-events")
        environment.wait_for("executors on all workers", lambda: len(executors()) == WORKERS)
        self._cables = [_Cable.of(each.id) for each in containers() if each.service == "spark-worker"]

    def _cut_one_off(self, environment: DrillEnvironment) -> bool:
        environment.wait_for("a task of a batch", lambda: bool(_busy()))
        busy = _busy()
        if not busy:
            return False
        executor = busy[0]
        cable = next(each for each in self._cables if _address(each.worker) == executor.host_port.partition(":")[0])
        cable.switch("down")
        sure = time.monotonic() + _SURE_SECONDS
        while time.monotonic() < sure:
            if not any(each.id == executor.id for each in _busy()):
                cable.switch("up")
                return False
            time.sleep(_POLL_SECONDS)
        print(f"  executor {executor.id} is cut off with {executor.active_tasks} tasks of a batch", flush=True)
        return True

    def wait_for_the_other_workers(self, environment: DrillEnvironment) -> None:
        """Wait until Spark has given the executor up; its tasks are then repeated by the others."""
        environment.wait_for("the loss of an executor", lambda: len(executors()) < WORKERS)

    def reconnect(self, environment: DrillEnvironment) -> None:
        """Connect the worker, let it work again, and go back to the stack as it was."""
        for each in self._cables:
            each.switch("up")
        if self._cables:
            environment.wait_for("executors on all workers", lambda: len(executors()) == WORKERS)
            sent = len(environment.game.acknowledged)
            environment.wait_until_healthy()
            print(f"  all workers work again, {len(environment.game.acknowledged) - sent} events later", flush=True)
        for container in (*(each.helper for each in self._cables), *([self._load] if self._load else [])):
            run(("docker", "rm", "--force", container))
        self._cables, self._load = [], ""
        compose("up", "--detach", "--no-deps", "--scale", "spark-worker=1", "spark-worker")
        compose("up", "--detach", "--no-deps", "ingest-events")
        environment.wait_for("the health of all services", lambda: not environment.unhealthy())


def executors() -> list[Executor]:
    """Return the executors that the job of ingestion has and counts as alive."""
    (application,) = json.loads(page("INGEST_EVENTS_PORT", "/api/v1/applications").text)
    text = page("INGEST_EVENTS_PORT", f"/api/v1/applications/{application['id']}/executors").text
    found = msgspec.json.decode(text, type=list[Executor])
    return [each for each in found if each.id != "driver" and each.is_active]


def _busy() -> list[Executor]:
    return [each for each in executors() if each.active_tasks]


def _start_load() -> str:
    """Start simulated players; returns the container's id. They stop by themselves."""
    return compose(
        "run", "--detach", "--no-deps", "tools", "python", "-m", "tools.simulator", "--target", "http",
        "--events", str(_RATE * _SECONDS_OF_LOAD), "--games", str(_GAMES), "--rate", str(_RATE),
    ).strip()  # fmt: skip


def _address(container: str) -> str:
    found = json.loads(run(("docker", "inspect", "--format", "{{json .NetworkSettings.Networks}}", container)))
    (network,) = found.values()
    return str(network["IPAddress"])
