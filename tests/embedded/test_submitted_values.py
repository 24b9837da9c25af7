"""Any value, from the gateway to each program that reads the tables: none stops a stream, and none differs."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from gamelake.delta.data_files import partition_folder
from gamelake.layers.silver import NESTED_COLUMNS
from gamelake.model.naming import DEAD_LETTERS, QUARANTINE, SILVER_EVENTS
from tests.embedded.extreme_values import (
    ACCEPTED,
    DEAD_LETTERED,
    REFUSED,
    REJECTED,
    REJECTED_PROTOBUF,
    ROWS_BY_KAFKA,
    TWICE,
)
from tests.embedded.gateway import Gateway
from tests.embedded.lakehouse import ROOT, Lakehouse
from tests.embedded.sending import Sender, contract_text
from tests.embedded.submissions import OTHER_GAME, Submissions
from tests.embedded.submitted_values import QUARANTINING, SubmittedEvent
from tests.support.table_values import Values, in_one_form, readers, unordered
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic

READERS = ("delta-rs", "DuckDB", "Polars", "DataFusion", "Spark")
# What the platform sets itself.
_PLATFORMS_OWN = frozenset({"kafka_partition", "kafka_offset", "ingest_time", "gamer_id", "event_date"})
_GOLD_FOR_SPARK = ("archery_duel_daily_agg",)
# What Polars takes for null in a path.
_NULL_IN_PATHS = "__HIVE_DEFAULT_PARTITION__"


@dataclass
class Outcome:
    """The submissions, and the tables of a lakehouse that has read them."""

    sent: Submissions
    lakehouse: Lakehouse
    spark: Callable[[], SparkSession]
    _read: dict[tuple[str, str], list[Values]] = field(default_factory=dict)

    def read(self, table: str, reader: str) -> list[Values]:
        """All rows of a table by a program, which reads it once."""
        if (table, reader) not in self._read:
            rows = readers(self.spark)[reader](self.lakehouse.directory / "lake" / table)
            self._read[table, reader] = in_one_form(rows)
        return self._read[table, reader]

    def rows_of_game(self, reader: str) -> list[Values]:
        """The rows of the game of odd values."""
        return self.read("silver/archery_duel_events", reader)

    @cached_property
    def dead_letters(self) -> dict[bytes, str]:
        """Reasons by the record's value."""
        rows = self.lakehouse.rows(DEAD_LETTERS, "value", "reason").to_pylist()
        return {row["value"]: row["reason"] for row in rows}


@pytest.fixture(scope="module")
def submissions(open_gateway: Callable[..., Gateway], kafka: EmbeddedKafka, registry: EmbeddedRegistry) -> Submissions:
    """All events, in Kafka."""
    sent = Submissions(open_gateway())
    sent.send_cases()
    sent.send_generated()
    sent.send_again()
    sent.send_of_other_game()
    sender = Sender(
        kafka.bootstrap_servers,
        registry.url,
        sent.gateway.topic,
        # A producer with its own limit: Kafka's is that of a compressed batch.
        {"message.max.bytes": 10_000_000, "compression.type": "zstd"},
    )
    frame = b"\0" + sender.register(contract_text(3)).to_bytes(4, "big") + b"\0"
    sent.by_kafka = [SubmittedEvent(changes) for changes in ROWS_BY_KAFKA.values()]
    sender.send_values([], [frame + event.protobuf() for event in sent.by_kafka])
    sender.send_bad([frame + value for value, _ in DEAD_LETTERED.values()])
    return sent


def _lakehouse(
    folder: Path, sent: Submissions, kafka: EmbeddedKafka, registry: EmbeddedRegistry, spark: Callable[[], SparkSession]
) -> Lakehouse:
    lakehouse = Lakehouse(folder, kafka.bootstrap_servers, registry.url, sent.gateway.topic, spark=spark)
    contract = yaml.safe_load((ROOT / "contracts/games.yaml").read_text())
    contract["games"][0]["partition_by"] = ["event_date", "event_name", "platform"]
    lakehouse.games_file.write_text(yaml.safe_dump(contract))
    shutil.copy(ROOT / "contracts/metrics.yaml", lakehouse.games_file.parent)
    lakehouse.settings |= {
        "GAMELAKE_FLOOD_SHARE": "1",
        "GAMELAKE_LIVE_OPS_PLAYER_TOPIC": f"{lakehouse.topic}-players",
        "GAMELAKE_LIVE_OPS_SIGNAL_TOPIC": f"{lakehouse.topic}-signals",
        "GAMELAKE_LIVE_OPS_TABLE_SECONDS": "0",
    }
    return lakehouse


@pytest.fixture(scope="module")
def outcome(
    submissions: Submissions,
    kafka: EmbeddedKafka,
    registry: EmbeddedRegistry,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Outcome:
    """A lakehouse without rules, whose game of odd values is partitioned by texts; each other stream has run, too."""

    def spark() -> SparkSession:
        session: SparkSession = request.getfixturevalue("spark")
        return session

    lakehouse = _lakehouse(tmp_path_factory.mktemp("values"), submissions, kafka, registry, spark)
    for name in ("PLAYER", "SIGNAL"):
        create_topic(kafka.bootstrap_servers, lakehouse.settings[f"GAMELAKE_LIVE_OPS_{name}_TOPIC"], 1)
    for job in ("ingest_events", "gold", "live_ops"):
        lakehouse.ingest(job)
    return Outcome(submissions, lakehouse, spark)


@pytest.fixture(scope="module")
def ruled(
    outcome: Outcome, kafka: EmbeddedKafka, registry: EmbeddedRegistry, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    """A lakehouse with the platform's rules, of the same records."""
    lakehouse = _lakehouse(tmp_path_factory.mktemp("ruled"), outcome.sent, kafka, registry, outcome.spark)
    # The columns that rules may name are those of the schemas next to the contract.
    shutil.copytree(ROOT / "contracts/proto", lakehouse.directory / "proto")
    lakehouse.settings["GAMELAKE_RULES"] = str(ROOT / "quality/rules")
    lakehouse.ingest()
    return Outcome(outcome.sent, lakehouse, outcome.spark)


def without_own(row: Values) -> Values:
    """A row without what the platform sets."""
    return {name: value for name, value in row.items() if name not in _PLATFORMS_OWN}


def _as_read(reader: str, row: Values) -> Values:
    """A row of the game of odd values as a program reads it: see the trap in docs/upstream."""
    if reader != "Polars" or row["game_name"] == OTHER_GAME:
        return row
    return row | {name: None for name in ("event_name", "platform") if not _is_in_path(name, row[name])}


def _is_in_path(column: str, value: object) -> bool:
    return value != _NULL_IN_PATHS and partition_folder({column: str(value)}) != f"{column}={_NULL_IN_PATHS}"


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_extreme_value_of_the_contract_is_a_row_with_this_value(outcome: Outcome, name: str) -> None:
    rows = {row["event_id"]: row for row in outcome.rows_of_game("delta-rs")}
    for event in outcome.sent.by_case[name]:
        assert without_own(rows[event.event_id]) == event.row()


@pytest.mark.parametrize("name", TWICE)
def test_of_a_name_that_comes_twice_in_json_the_last_value_counts(outcome: Outcome, name: str) -> None:
    rows = {row["event_id"]: row for row in outcome.rows_of_game("delta-rs")}
    (event,) = outcome.sent.by_case[name]

    assert outcome.sent.replies[name].result.accepted == 1
    assert without_own(rows[event.event_id]) == event.row()


@pytest.mark.parametrize("name", [*REJECTED, *REJECTED_PROTOBUF])
def test_a_value_that_the_contract_excludes_is_rejected_with_its_reason_and_costs_no_other_event(
    submissions: Submissions, name: str
) -> None:
    _, reason, path = REJECTED[name] if name in REJECTED else REJECTED_PROTOBUF[name]

    result = submissions.replies[name].result

    found = [(each["index"], each["reason"], each.get("field", "")) for each in result.rejected]
    assert (result.accepted, found) == (1, [(0, reason, path)])


@pytest.mark.parametrize("name", REFUSED)
def test_a_body_with_unclear_ends_of_events_is_refused_whole(submissions: Submissions, name: str) -> None:
    assert submissions.replies[name].status == REFUSED[name][1]


@pytest.mark.parametrize("reader", READERS)
def test_each_program_reads_each_accepted_event_as_it_was_sent(outcome: Outcome, reader: str) -> None:
    rows = [*outcome.rows_of_game(reader), *outcome.read("silver/bingo_harbor_events", reader)]
    found = {str(row["event_id"]): row for row in rows}

    assert len(rows) == len(found)
    assert found.keys() == outcome.sent.expected.keys()
    expected = {each: _as_read(reader, row) for each, row in outcome.sent.expected.items()}
    wrong = {
        event_id: {name: (found[event_id].get(name), value) for name, value in row.items()}
        for event_id, row in expected.items()
        if without_own(found[event_id]) != row
    }
    assert wrong == {}


@pytest.mark.parametrize("reader", READERS)
def test_the_table_of_all_games_has_the_same_values_as_the_tables_of_the_games(outcome: Outcome, reader: str) -> None:
    common = outcome.read(SILVER_EVENTS, reader)
    of_games = [*outcome.rows_of_game("delta-rs"), *outcome.read("silver/bingo_harbor_events", "delta-rs")]

    names = common[0].keys() - NESTED_COLUMNS.keys()
    expected = [{name: row[name] for name in names} | _nested(row) for row in of_games]
    assert unordered(map(_by_name, common)) == unordered(map(_by_name, expected))


def _by_name(row: Values) -> Values:
    return dict(sorted(row.items()))


def _nested(row: Values) -> Values:
    """What the table of all games has of a row's nested messages: the first of them that is there."""
    found: Values = {}
    for name, places in NESTED_COLUMNS.items():
        values = [row[message][field] for message, field in places if row[message] is not None]
        found[name] = next((value for value in values if value is not None), None)
        found[name] = None if found[name] == "" else found[name]
    return found


def test_a_player_has_one_pseudonym_whatever_the_characters_of_the_name(outcome: Outcome) -> None:
    rows = {row["event_id"]: row["gamer_id"] for row in outcome.rows_of_game("delta-rs")}

    pairs = {(event.fields["gamer_id"], rows[event.event_id]) for event in outcome.sent.accepted}

    assert len(pairs) == len(dict(pairs)) == len({pseudonym for _, pseudonym in pairs})


@pytest.mark.parametrize("name", DEAD_LETTERED)
def test_a_value_that_came_by_kafka_alone_is_a_dead_letter_with_its_reason(outcome: Outcome, name: str) -> None:
    body, reason = DEAD_LETTERED[name]

    assert [found for value, found in outcome.dead_letters.items() if value[6:] == body] == [reason]


def test_each_record_is_a_row_a_duplicate_a_dead_letter_or_quarantined(outcome: Outcome, ruled: Outcome) -> None:
    sent = outcome.sent
    without_rules, with_rules = outcome.lakehouse.reconciliation(), ruled.lakehouse.reconciliation()

    quarantined = Counter(ruled.lakehouse.event_ids(QUARANTINE))
    assert without_rules.problems == with_rules.problems == []
    assert without_rules.records == len(sent.expected) + sent.again + len(DEAD_LETTERED) == with_rules.records
    assert without_rules.silver_rows == len(sent.expected) == with_rules.silver_rows + quarantined.total()
    assert without_rules.duplicates.total() == sent.again == with_rules.duplicates.total()


@pytest.mark.parametrize("reader", READERS)
def test_a_row_that_breaks_a_rule_is_quarantined_with_its_values(ruled: Outcome, reader: str) -> None:
    events = {event.event_id: event for event in (*ruled.sent.accepted, *ruled.sent.by_kafka)}
    expected = {event_id: event.quarantined_by for event_id, event in events.items() if event.quarantined_by}
    rows = {str(row["event_id"]): row for row in ruled.read(QUARANTINE, reader)}

    assert {event_id: row["rule"] for event_id, row in rows.items() if row["rule"] not in expected[event_id]} == {}
    assert {event_id: set(row["broken"]) & QUARANTINING for event_id, row in rows.items()} == expected
    for event_id, row in rows.items():
        known = events[event_id].row()
        whole = json.loads(str(row["row"]))
        for name in ("event_name", "session_id", "platform", "app_version", "amount", "event_time"):
            assert row[name] == known[name]
        for name in ("event_name", "session_id", "platform", "app_version", "country", "level", "error", "resource"):
            assert whole.get(name) == known[name]


def test_gold_is_right_for_the_other_game_and_the_same_to_each_program(outcome: Outcome) -> None:
    players = outcome.read("gold/bingo_harbor_player_agg", "delta-rs")

    found = sorted((row["session_count"], row["event_count"], row["bookings"]) for row in players)
    assert found == [(8, 10, Decimal("0.2"))] * 4
    names = [path.name for path in sorted((outcome.lakehouse.directory / "lake/gold").iterdir())]
    assert {*_GOLD_FOR_SPARK, "all_sessions", "kpi_daily", "live_ops_player_state"} <= set(names)
    # Spark takes a second for each table.
    asked = {reader: _GOLD_FOR_SPARK if reader == "Spark" else names for reader in READERS[1:]}
    wrong = [
        (name, reader)
        for reader, tables in asked.items()
        for name in tables
        if unordered(outcome.read(f"gold/{name}", reader)) != unordered(outcome.read(f"gold/{name}", "delta-rs"))
    ]
    assert wrong == []


def test_gold_has_the_events_and_bookings_of_the_game_of_odd_values(outcome: Outcome) -> None:
    rows = outcome.rows_of_game("delta-rs")

    players = outcome.read("gold/archery_duel_player_agg", "delta-rs")

    events = Counter(row["gamer_id"] for row in rows)
    bookings: dict[object, Decimal] = {}
    for row in rows:
        if row["event_name"] == "purchase" and row["amount"] is not None:
            amount = Decimal(float.fromhex(str(row["amount"]))).quantize(Decimal("0.000001"), ROUND_HALF_UP)
            bookings[row["gamer_id"]] = bookings.get(row["gamer_id"], Decimal(0)) + amount
    assert {row["gamer_id"]: row["event_count"] for row in players if row["event_count"]} == events
    assert {row["gamer_id"]: row["bookings"] for row in players if row["bookings"] is not None} == bookings


def test_the_key_figures_of_the_other_game_are_right(outcome: Outcome) -> None:
    days = [row for row in outcome.read("gold/kpi_daily", "delta-rs") if row["game_name"] == OTHER_GAME]

    figures = ("events", "purchases", "bookings", "active_players", "payers", "sessions")
    # A run may cross midnight.
    assert {name: sum(row[name] for row in days) for name in figures[:3]} == {
        "events": 40,
        "purchases": 8,
        "bookings": Decimal("0.8"),
    }
    late = [row for row in outcome.read("gold/kpi_late", "delta-rs") if row["game_name"] == OTHER_GAME]
    assert {name: sum(row[name] for row in late) for name in ("arrived", "late")} == {"arrived": 40, "late": 0}


def test_live_operations_have_the_players_of_the_other_game(outcome: Outcome) -> None:
    states = outcome.read("gold/live_ops_player_state", "delta-rs")

    found = [(row["purchases"], row["bookings_micros"]) for row in states if row["game"] == "bingo_harbor"]
    assert found == [(2, 200_000)] * 4
    assert {row["game"] for row in states} == {"archery_duel", "bingo_harbor"}
