"""The programs of a demo besides Kafka and the registry: ingest job, gateway, simulated games, old producers."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.demo.options import DemoOptions, DemoPaths
from tools.embedded import EmbeddedServices
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.embedded.java import spark_environment
from tools.embedded.process import Program
from tools.embedded.service import CONTRACTS, REPOSITORY, fetched

TOPIC = "game-events"
PARTITIONS = 4
RULES = REPOSITORY / "quality" / "rules"
SPARK_JARS = REPOSITORY / "build" / "jars" / "spark"
# Without a pause between batches, a job that waits for records would keep a core busy with polling Kafka.
TRIGGER_SECONDS = 0.5
# One game may send as fast as all of them together: the rate limit must not limit the demo.
_KEY_RATE = 1_000_000
# One event in this many comes from a producer that is older than the gateway and writes to Kafka directly.
_OLD_PRODUCERS = 33
# Nothing validates what such a producer writes.
_OLD_HABITS = ("--undecodable", "0.05", "--unknown-game", "0.02", "--null-time", "0.02")
# Seeds are times, so that each run has its own players; this offset keeps the old producers' seeds apart from them.
_OLD_PRODUCERS_SEED = 2**32


def ingest_job(options: DemoOptions, paths: DemoPaths, services: EmbeddedServices) -> Program:
    """Return the ingest job as on a cluster; runs until it is stopped."""
    settings = {
        "GAMELAKE_LAKEHOUSE": paths.lakehouse.uri,
        "GAMELAKE_BOOTSTRAP_SERVERS": services.kafka.bootstrap_servers,
        "GAMELAKE_TOPIC": TOPIC,
        # The demo reads the batches from the log.
        "GAMELAKE_LOG_FORMAT": "json",
        "GAMELAKE_REGISTRY_URL": services.registry.url,
        "GAMELAKE_GAMES_FILE": str(CONTRACTS / "games.yaml"),
        "GAMELAKE_RULES": str(RULES),
        "GAMELAKE_SPARK_JARS": str(fetched(SPARK_JARS)),
        "GAMELAKE_MAX_OFFSETS_PER_TRIGGER": str(options.max_records_per_batch),
        "GAMELAKE_TRIGGER_SECONDS": str(TRIGGER_SECONDS),
        "GAMELAKE_LINEAGE_FILE": str(paths.lineage),
    }
    return Program(
        name="the ingest job",
        command=(sys.executable, "-m", "jobs.ingest_events"),
        log_file=paths.job_log,
        environment={**spark_environment(), **_importable(), **settings},
    )


def gateway(paths: DemoPaths, services: EmbeddedServices, games: Iterable[str]) -> EmbeddedGateway:
    """Return the gateway, with new keys for the games and the vault of earlier runs."""
    backing = GatewayBackend(
        bootstrap_servers=services.kafka.bootstrap_servers, registry_url=services.registry.url, topic=TOPIC
    )
    gateway = EmbeddedGateway(paths.gateway, backing)
    gateway.make_keys(games, _KEY_RATE)
    return gateway


def games(options: DemoOptions, paths: DemoPaths, gateway: EmbeddedGateway, seed: int) -> Program:
    """Return the simulated games of one run, which send to the gateway."""
    arguments = {
        "--target": "http",
        "--url": gateway.url,
        "--keys-file": str(gateway.keys_file),
        "--events": str(_of_games(options.events)),
        "--rate": str(_of_games(options.rate)),
        "--seed": str(seed),
        "--ledger": str(paths.http_ledger),
    }
    return _simulator(options, "the games", paths.games_log, arguments)


def old_producers(options: DemoOptions, paths: DemoPaths, services: EmbeddedServices, seed: int) -> Program:
    """Return producers that write to Kafka directly, and send some records that become dead letters."""
    arguments = {
        "--target": "kafka",
        "--bootstrap-servers": services.kafka.bootstrap_servers,
        "--registry-url": services.registry.url,
        "--topic": TOPIC,
        "--events": str(_of_old_producers(options.events)),
        "--rate": str(_of_old_producers(options.rate)),
        "--seed": str(seed + _OLD_PRODUCERS_SEED),
        "--ledger": str(paths.kafka_ledger),
    }
    return _simulator(options, "the old producers", paths.old_producers_log, arguments, *_OLD_HABITS)


def _of_games(events: int) -> int:
    return max(1, events - _of_old_producers(events)) if events else 0


def _of_old_producers(events: int) -> int:
    return max(1, events // _OLD_PRODUCERS) if events else 0


def _simulator(options: DemoOptions, name: str, log_file: Path, arguments: Mapping[str, str], *habits: str) -> Program:
    shared = {"--contracts": str(CONTRACTS), "--games": str(options.games), "--versions": str(options.versions)}
    words = [word for argument in {**shared, **arguments}.items() for word in argument]
    return Program(
        name=name,
        command=(sys.executable, "-m", "tools.simulator", *words, *habits),
        log_file=log_file,
        environment=_importable(),
    )


def _importable() -> Mapping[str, str]:
    """PYTHONPATH with the repository, whatever directory the demo was started in."""
    already = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *([already] if already else [])])}
