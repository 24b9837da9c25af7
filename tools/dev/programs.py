"""The programs of `make dev`: what each one runs, when it is healthy, what it needs and what it is made of."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from gamelake.contract.games import load_games
from gamelake.model.errors import ContractError
from tools.dev.imports import files_of
from tools.dev.load import PLAYERS, LoadDial
from tools.dev.options import DevOptions, DevPaths, DevPorts, address
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.embedded.java import spark_environment
from tools.embedded.kafka import SYNCED, create_topic
from tools.embedded.ports import HOST, accepts_connections
from tools.embedded.process import Program, ServiceUnhealthyError
from tools.embedded.service import CONTRACTS, REPOSITORY, EmbeddedService, fetched

TOPIC = "events"
_PARTITIONS = 4
# The topics of live operations, as compose/kafka/topics.yaml has them.
_STATES, _SEGMENTS, _SIGNALS = "live-ops.player-state", "live-ops.segments", "live-ops.signals"
_KEY_RATE = 1_000_000
_SPARK_JARS = REPOSITORY / "build" / "jars" / "spark"
_RULES = REPOSITORY / "quality" / "rules"
_SCHEDULE = Path(__file__).with_name("schedule.yaml")
# Memory of a batch grows with its records: a backlog is read in portions that a laptop has room for.
_RECORDS_PER_BATCH = 200_000
# A running batch may end.
_TIME_TO_END = timedelta(seconds=30)
_PLAYERS = 20_000
# What the gateway and the jobs need.
_BACKING = ("kafka", "registry")
_SERVED = ("gold", "live_ops")
_EVENTS = 10**9


class PythonJob(EmbeddedService):
    """A program of `jobs`: healthy once it has touched all of its heartbeat files; SIGTERM lets its batch end."""

    def __init__(self, paths: DevPaths, module: str, settings: Mapping[str, str], *heartbeats: str) -> None:
        super().__init__(paths.directory)
        self._module = module
        self._settings = settings
        self._short_name = module.rpartition(".")[2]
        self._heartbeat = paths.heartbeat(self._short_name)
        self._touched = [self._heartbeat.with_name(f"{self._heartbeat.name}{end}") for end in heartbeats or ("",)]
        self._log = paths.log(self._short_name)

    def program(self) -> Program:
        """Remove the heartbeats of the last start, and describe the process."""
        for file in self._touched:
            file.unlink(missing_ok=True)
        return Program(
            name=self._short_name,
            command=(sys.executable, "-m", self._module),
            log_file=self._log,
            environment={
                **spark_environment(),
                **importable(),
                **self._settings,
                "GAMELAKE_HEARTBEAT_FILE": str(self._heartbeat),
            },
        )

    def is_healthy(self) -> bool:
        """Return True if it has begun its work."""
        return all(file.exists() for file in self._touched)

    def stop(self) -> None:
        """Stop it once the running batch ends, but after half a minute at the latest.

        If it is killed, it loses nothing either.
        """
        if self._process is None:
            return
        try:
            with suppress(ServiceUnhealthyError):
                self._process.finish(_TIME_TO_END)
        finally:
            self._process.kill()


class PlayersProcess(EmbeddedService):
    """Players that send events to the gateway at a rate, from new seeds at each start."""

    name = PLAYERS

    def __init__(self, options: DevOptions, paths: DevPaths, gateway: EmbeddedGateway, dial: LoadDial) -> None:
        super().__init__(paths.directory)
        self._options = options
        self._dial = dial
        self._gateway = gateway
        self._log = paths.log("players")

    def program(self) -> Program:
        """Describe the process."""
        arguments = {
            "--target": "http",
            "--url": self._gateway.url,
            "--keys-file": str(self._gateway.keys_file),
            "--contracts": str(CONTRACTS),
            "--games": str(self._options.games),
            "--rate": str(self._dial.rate),
            "--events": str(_EVENTS),
            "--players": str(_PLAYERS),
            # The same seed would make events with the same ids again.
            "--seed": str(time.time_ns() // 1_000_000),
            "--ledger": str(self.directory / "players.json"),
        }
        words = [word for argument in arguments.items() for word in argument]
        return Program(
            name=self.name,
            command=(sys.executable, "-m", "tools.simulator", *words),
            log_file=self._log,
            environment=importable(),
        )

    def is_healthy(self) -> bool:
        """Return True: it is healthy while it runs."""
        return True


class EmbeddedPortal(EmbeddedService):
    """The portal; it runs questions by DuckDB."""

    name = "portal"

    def __init__(self, paths: DevPaths, port: int, settings: Mapping[str, str]) -> None:
        super().__init__(paths.directory)
        self._port = port
        self._settings = settings
        self._log = paths.log("portal")

    def program(self) -> Program:
        """Describe the process."""
        return Program(
            name=self.name,
            command=(sys.executable, "-m", "services.portal"),
            log_file=self._log,
            environment={**spark_environment(), **importable(), **self._settings, "PORTAL_PORT": str(self._port)},
        )

    def is_healthy(self) -> bool:
        """Return True if it responds."""
        return accepts_connections(self._port)


@dataclass(frozen=True, kw_only=True)
class DevProgram:
    """One program of the platform.

    Attributes:
        address: what people open or connect to, if anything.
        needs: names of the programs that must be healthy before its first start.
        modules: whose files, with all that they import, it is made of; none for what is not ours.
        reads: folders whose changes need a restart, too.
        is_wanted: whether it is to run at present.
    """

    name: str
    service: EmbeddedService
    address: str = ""
    needs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    reads: tuple[Path, ...] = field(default=(CONTRACTS,))
    is_wanted: Callable[[], bool] = lambda: True

    def is_changed_by(self, changed: set[Path]) -> bool:
        """Return True if one of these files is a part of it."""
        if not self.modules or not changed:
            return False
        if any(file.is_relative_to(folder) for file in changed for folder in self.reads):
            return True
        return not changed.isdisjoint(files_of(self.modules, REPOSITORY))


class _Kafka(EmbeddedKafka):
    """Kafka, healthy once the topics are there."""

    has_topics = False

    def is_healthy(self) -> bool:
        if not super().is_healthy():
            return False
        if not self.has_topics:
            create_topic(self.bootstrap_servers, TOPIC, _PARTITIONS)
            create_topic(self.bootstrap_servers, _STATES, _PARTITIONS, {"cleanup.policy": "compact"})
            create_topic(self.bootstrap_servers, _SEGMENTS, _PARTITIONS, {"cleanup.policy": "compact"})
            create_topic(self.bootstrap_servers, _SIGNALS, 1)
            self.has_topics = True
        return True


class _Gateway(EmbeddedGateway):
    """The gateway, with a key for each game, and the newest version of the event, as of its latest start."""

    def keep_keys_of_games(self) -> None:
        self.keep_keys([game.name for game in load_games(CONTRACTS / "games.yaml").games], _KEY_RATE)

    def program(self) -> Program:
        # The gateway itself reports a contract that can't be read.
        with suppress(ContractError):
            self.keep_keys_of_games()
        found = super().program()
        versions = [int(folder.name[1:]) for folder in (CONTRACTS / "submitted").glob("v[0-9]*")]
        return replace(found, environment={**found.environment, "INGEST_CONTRACT_VERSION": str(max(versions))})


def programs(options: DevOptions, paths: DevPaths, dial: LoadDial, switchboard: Path) -> list[DevProgram]:
    """Return all programs, each after those that it needs; the gateway's keys are made for games that have none.

    Args:
        options: the command line.
        paths: of the data directory.
        dial: has the rate of the players.
        switchboard: the socket by which the portal changes that rate.
    """
    ports = options.ports
    kafka = _Kafka(paths.directory / "kafka", SYNCED, ports.kafka)
    registry = EmbeddedRegistry(paths.directory / "registry", ports.registry)
    backing = GatewayBackend(bootstrap_servers=kafka.bootstrap_servers, registry_url=registry.url, topic=TOPIC)
    gateway = _Gateway(paths.directory / "gateway", backing, ports=ports.gateway)
    gateway.keep_keys_of_games()
    shared = _settings_of_jobs(paths, backing)
    metrics = [_metrics_page(port) for port in (ports.ingest_metrics, *ports.serving_metrics)]
    probes = {
        "kafka": f"tcp://{kafka.bootstrap_servers}",
        "registry": f"{registry.url}/subjects",
        "gateway": f"{gateway.url}/readyz",
        **dict(zip(("ingest", *_SERVED), metrics, strict=True)),
    }
    return [
        DevProgram(name="kafka", service=kafka, address=kafka.bootstrap_servers),
        DevProgram(name="registry", service=registry, address=registry.url),
        DevProgram(
            name="gateway",
            service=gateway,
            address=gateway.url,
            needs=_BACKING,
            modules=("services.gateway.__main__", "services.gateway.process"),
        ),
        *_jobs(ports, paths, shared),
        DevProgram(
            name="portal",
            service=EmbeddedPortal(paths, ports.portal, shared | _settings_of_portal(probes, metrics, switchboard)),
            address=address(ports.portal),
            modules=("services.portal.__main__",),
        ),
        DevProgram(
            name=PLAYERS,
            service=PlayersProcess(options, paths, gateway, dial),
            needs=("gateway",),
            modules=("tools.simulator.__main__",),
            is_wanted=dial.is_on,
        ),
    ]


def _jobs(ports: DevPorts, paths: DevPaths, shared: Mapping[str, str]) -> list[DevProgram]:
    ingest = {
        **shared,
        "GAMELAKE_METRICS_PORT": str(ports.ingest_metrics),
        "GAMELAKE_TRIGGER_SECONDS": "1",
        "GAMELAKE_RULES": str(_RULES),
    }
    serving = {
        **shared,
        "GAMELAKE_METRICS_PORT": str(ports.serving_metrics.start),
        "GAMELAKE_SEGMENTS_TOPIC": _SEGMENTS,
        "GAMELAKE_TRIGGER_SECONDS": "2",
    }
    return [
        DevProgram(
            name="ingest",
            service=PythonJob(paths, "jobs.ingest_events", ingest),
            address=_metrics_page(ports.ingest_metrics),
            needs=_BACKING,
            modules=("jobs.ingest_events", "gamelake.streaming.python_daemon"),
        ),
        DevProgram(
            name="serving",
            service=PythonJob(paths, "jobs.serving", serving, *(f".{name}" for name in _SERVED)),
            address=_metrics_page(ports.serving_metrics.start),
            needs=_BACKING,
            modules=("jobs.serving", "gamelake.streaming.python_daemon"),
        ),
        DevProgram(
            name="maintenance",
            service=PythonJob(paths, "jobs.maintenance", {**shared, **settings_of_maintenance()}),
            needs=_BACKING,
            modules=("jobs.maintenance",),
            reads=(CONTRACTS, _SCHEDULE),
        ),
    ]


def _metrics_page(port: int) -> str:
    return f"{address(port)}/metrics"


def importable() -> Mapping[str, str]:
    """Return PYTHONPATH with the repository, whatever directory the process was started in."""
    already = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *([already] if already else [])])}


def _settings_of_portal(probes: Mapping[str, str], metrics: Sequence[str], switchboard: Path) -> dict[str, str]:
    return {
        "PORTAL_SWITCHBOARD": str(switchboard),
        "PORTAL_PROBES": ",".join(f"{name}={page}" for name, page in probes.items()),
        "PORTAL_METRICS": ",".join(metrics),
        # As soon as make demo and make docs have made them.
        "PORTAL_REPORT": str(REPOSITORY / "build/demo/report.html"),
        "PORTAL_DOCS": str(REPOSITORY / "build/docs/site"),
    }


def settings_of_maintenance() -> dict[str, str]:
    """Return the settings of the scheduler in addition to those of all jobs."""
    return {
        "GAMELAKE_SCHEDULE_FILE": str(_SCHEDULE),
        # Nothing here scrapes its metrics, for which it would measure all tables.
        "GAMELAKE_MAINTENANCE_MEASURE_SECONDS": "0",
        # Less than the time in which it has to end.
        "GAMELAKE_MAINTENANCE_GRACE_SECONDS": "10",
    }


def _settings_of_jobs(paths: DevPaths, backing: GatewayBackend) -> dict[str, str]:
    return {
        "GAMELAKE_LAKEHOUSE": paths.lakehouse.uri,
        "GAMELAKE_BOOTSTRAP_SERVERS": backing.bootstrap_servers,
        "GAMELAKE_TOPIC": backing.topic,
        "GAMELAKE_REGISTRY_URL": backing.registry_url,
        "GAMELAKE_GAMES_FILE": str(CONTRACTS / "games.yaml"),
        "GAMELAKE_SPARK_JARS": str(fetched(_SPARK_JARS)),
        "GAMELAKE_MAX_OFFSETS_PER_TRIGGER": str(_RECORDS_PER_BATCH),
        "GAMELAKE_METRICS_HOST": HOST,
    }
