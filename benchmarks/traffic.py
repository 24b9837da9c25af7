"""The topic that all approaches read, and games contracts that spread it over fewer or more tables."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml

from gamelake.kafka import KafkaAccess
from gamelake.schemas.event_schemas import load_schemas, register
from tools.embedded.kafka import create_topic
from tools.embedded.service import REPOSITORY
from tools.simulator.encoding import KafkaRecordEncoder
from tools.simulator.kafka_run import DeliveryError, KafkaSender
from tools.simulator.spec import NO_BAD_EVENTS, TrafficSpec
from tools.simulator.traffic import TrafficGenerator

GAME_NAMES = tuple(f"Game {number:03d}" for number in range(1, 101))
PARTITIONS = 4
VERSIONS = 3
CONTRACTS = REPOSITORY / "contracts"
RULES = REPOSITORY / "quality" / "rules" / "all_games.yaml"
# A game's rows have 20 rules: 15 are shared by all games, and 5 are its own.
_SHARED_RULES = 15
_OWN_RULES = (
    "amount <= {}",
    "level <= {}",
    "event_name <> 'closed_beta_{}'",
    "score_adjustment <= {}",
    "app_version IS NULL OR length(app_version) <= {}",
)


@dataclass(frozen=True, slots=True)
class Filled:
    """The content of a topic: number of records, and total size of their values."""

    records: int
    value_bytes: int


def fill(bootstrap_servers: str, registry_url: str, topic: str, events: int) -> Filled:
    """Create a topic and fill it with events of all games and versions, without defects.

    Raises:
        DeliveryError: Kafka did not confirm every record.
    """
    create_topic(bootstrap_servers, topic, PARTITIONS)
    schemas = load_schemas(CONTRACTS, VERSIONS)
    ids = register(schemas, registry_url=registry_url, topic=topic)
    spec = TrafficSpec(game_names=GAME_NAMES, versions=VERSIONS, events=events, shares=NO_BAD_EVENTS)
    encoders = [KafkaRecordEncoder(schema, schema_id) for schema, schema_id in zip(schemas, ids, strict=True)]
    return send_all(bootstrap_servers, topic, TrafficGenerator(spec, encoders))


def send_all(bootstrap_servers: str, topic: str, traffic: TrafficGenerator) -> Filled:
    """Send all records of a run to a topic.

    Raises:
        DeliveryError: Kafka did not confirm every record.
    """
    sender = KafkaSender(kafka=KafkaAccess(bootstrap_servers, None), topic=topic)
    value_bytes = 0
    for batch in traffic.batches():
        sender.send(batch)
        value_bytes += batch.value_bytes
    acked = sender.finish()
    if acked != sender.sent:
        raise DeliveryError(f"Kafka confirmed {acked} of {sender.sent} records")
    return Filled(acked, value_bytes)


def write_contract(folder: Path, tables: int) -> Path:
    """Write a games contract that spreads all games evenly over `tables` tables; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    games = [{"name": f"game_{number + 1:03d}", "match": list(GAME_NAMES[number::tables])} for number in range(tables)]
    path = folder / f"games-{tables}.yaml"
    # As in the platform's contract; by default the attributes of long events would be dead letters.
    lengths = {"fields": {"attributes": 4_096}}
    path.write_text(yaml.safe_dump({"unlisted_games": "dead_letters", "games": games, "lengths": lengths}))
    return path


def write_rules(folder: Path, tables: int) -> Path:
    """Write 20 rules for each game of a contract with `tables` tables, which no event breaks; returns the folder.

    The schemas are copied next to them, as in a contract: rules may name columns that no event has had yet.
    """
    shutil.copytree(CONTRACTS / "proto", folder / "proto", dirs_exist_ok=True)
    own = [
        {
            "name": f"game_{number:03d}_{at}",
            "expect": expect.format(100_000 + number),
            "severity": "quarantine",
            "owner": "benchmarks",
            "why": "A rule that takes time to evaluate.",
            "games": [f"game_{number:03d}"],
        }
        for number in range(1, tables + 1)
        for at, expect in enumerate(_OWN_RULES)
    ]
    shared = yaml.safe_load(RULES.read_text(encoding="utf-8"))["rules"][:_SHARED_RULES]
    path = folder / "rules"
    path.mkdir(parents=True, exist_ok=True)
    (path / "rules.yaml").write_text(yaml.safe_dump({"rules": [*shared, *own]}))
    return path
