"""The topic that all ways read, and the games contracts that spread it over fewer or more tables."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml

from gamelake.kafka import KafkaAccess
from gamelake.schemas.event_schemas import load_schemas, register
from tools.embedded.kafka import create_topic
from tools.embedded.service import REPOSITORY
from tools.simulator.encoding import RecordEncoder
from tools.simulator.kafka_run import DeliveryError, KafkaSender
from tools.simulator.spec import NO_BAD_EVENTS, TrafficSpec
from tools.simulator.traffic import TrafficGenerator

GAME_NAMES = tuple(f"Game {number:03d}" for number in range(1, 101))
PARTITIONS = 4
VERSIONS = 3
CONTRACTS = REPOSITORY / "contracts"
RULES = REPOSITORY / "quality" / "rules" / "all_games.yaml"
# Of 20 rules that judge a game's rows 15 are those of all games, and 5 its own.
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
    """What a topic holds: records, and the bytes of their values together."""

    records: int
    value_bytes: int


def fill(bootstrap_servers: str, registry_url: str, topic: str, events: int) -> Filled:
    """Make a topic and fill it with events of all games and versions, none of them bad.

    Raises:
        DeliveryError: Kafka did not take every record.
    """
    create_topic(bootstrap_servers, topic, PARTITIONS)
    schemas = load_schemas(CONTRACTS, VERSIONS)
    ids = register(schemas, registry_url=registry_url, topic=topic)
    spec = TrafficSpec(game_names=GAME_NAMES, versions=VERSIONS, events=events, shares=NO_BAD_EVENTS)
    encoders = [RecordEncoder(schema, schema_id) for schema, schema_id in zip(schemas, ids, strict=True)]
    sender = KafkaSender(kafka=KafkaAccess(bootstrap_servers, None), topic=topic)
    value_bytes = 0
    for batch in TrafficGenerator(spec, encoders).batches():
        sender.send(batch)
        value_bytes += batch.value_bytes
    acked = sender.finish()
    if acked != sender.sent:
        raise DeliveryError(f"Kafka confirmed {acked} of {sender.sent} records")
    return Filled(acked, value_bytes)


def write_contract(folder: Path, tables: int) -> Path:
    """Write a games contract that spreads all games evenly over so many tables, and give its path."""
    folder.mkdir(parents=True, exist_ok=True)
    games = [{"name": f"game_{number + 1:03d}", "match": list(GAME_NAMES[number::tables])} for number in range(tables)]
    path = folder / f"games-{tables}.yaml"
    path.write_text(yaml.safe_dump({"unlisted_games": "dead_letters", "games": games}))
    return path


def write_rules(folder: Path, tables: int) -> Path:
    """Write 20 rules for each game of the contract for so many tables, which no event breaks; give the folder.

    The schemas are put beside them, where a contract's stand: rules may name columns that no event has brought yet.
    """
    shutil.copytree(CONTRACTS / "proto", folder / "proto", dirs_exist_ok=True)
    own = [
        {
            "name": f"game_{number:03d}_{at}",
            "expect": expect.format(100_000 + number),
            "severity": "quarantine",
            "owner": "benchmarks",
            "why": "It takes time.",
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
