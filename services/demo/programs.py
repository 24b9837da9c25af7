"""The two programs that a demo runs beside Kafka and the registry."""

import os
import sys
from collections.abc import Mapping

from services.demo.cli import Options
from services.demo.places import Places
from services.embedded import EmbeddedServices
from services.embedded.java import find_java_home
from services.embedded.process import Program
from services.embedded.service import REPOSITORY, fetched

TOPIC = "game-events"
PARTITIONS = 4
CONTRACTS = REPOSITORY / "contracts"
SPARK_JARS = REPOSITORY / "build" / "jars" / "spark"
# Without a pause between batches a job that waits for the simulator would keep a core busy asking Kafka.
TRIGGER_SECONDS = 0.5


def ingest_job(options: Options, places: Places, services: EmbeddedServices) -> Program:
    """The job as a cluster would run it, until it is asked to end."""
    settings = {
        "GAMELAKE_LAKEHOUSE": places.lakehouse.uri,
        "GAMELAKE_BOOTSTRAP_SERVERS": services.kafka.bootstrap_servers,
        "GAMELAKE_TOPIC": TOPIC,
        "GAMELAKE_REGISTRY_URL": services.registry.url,
        "GAMELAKE_GAMES_FILE": str(CONTRACTS / "games.yaml"),
        "GAMELAKE_SPARK_JARS": str(fetched(SPARK_JARS)),
        "GAMELAKE_MAX_OFFSETS_PER_TRIGGER": str(options.max_records_per_batch),
        "GAMELAKE_TRIGGER_SECONDS": str(TRIGGER_SECONDS),
    }
    interpreters = {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java_home())}
    return Program(
        name="the ingest job",
        command=(sys.executable, "-m", "jobs.ingest_events"),
        log_file=places.job_log,
        environment={**_importable(), **interpreters, **settings},
    )


def simulator(options: Options, places: Places, services: EmbeddedServices, seed: int) -> Program:
    """The players of one run."""
    arguments = {
        "--bootstrap-servers": services.kafka.bootstrap_servers,
        "--registry-url": services.registry.url,
        "--topic": TOPIC,
        "--contracts": str(CONTRACTS),
        "--games": str(options.games),
        "--versions": str(options.versions),
        "--rate": str(options.rate),
        "--events": str(options.events),
        "--seed": str(seed),
        "--ledger": str(places.ledger),
    }
    words = [word for argument in arguments.items() for word in argument]
    return Program(
        name="the simulator",
        command=(sys.executable, "-m", "services.simulator", *words),
        log_file=places.simulator_log,
        environment=_importable(),
    )


def _importable() -> Mapping[str, str]:
    """The repository on the path of Python, wherever the demo was started."""
    already = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *([already] if already else [])])}
