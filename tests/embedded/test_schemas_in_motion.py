"""Rows 22 to 24 of the fault matrix: the registry goes away, schemas change, games appear, and the job just runs."""

from collections import Counter
from datetime import date

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from gamelake.schemas.compiler import compile_sources, message_at
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender, an_event, contract_text, framed
from tests.support.eventually import eventually
from tools.embedded import EmbeddedRegistry


@pytest.fixture(autouse=True)
def _impatient(lakehouse: Lakehouse) -> None:
    lakehouse.settings |= {"GAMELAKE_SCHEMA_WAIT_SECONDS": "2", "GAMELAKE_SCHEMA_RETRY_SECONDS": "1"}


def test_new_columns_and_new_games_appear_while_the_job_runs(lakehouse: Lakehouse, sender: Sender) -> None:
    with lakehouse.ingesting():
        old = sender.send_events(20, "Archery")
        lakehouse.await_rows("silver/archery_events", old)
        new = sender.send_events(20, "Archery", contract_text(3), connection_type=2, experiment_ids=["blue"])
        unlisted = sender.send_events(20, "Brand New")
        lakehouse.await_rows("silver/archery_events", new)
        lakehouse.await_rows("silver/brand_new_events", unlisted)

    rows = lakehouse.rows("silver/archery_events", "event_id", "connection_type", "experiment_ids").to_pylist()
    connection = {row["event_id"]: row["connection_type"] for row in rows}
    assert {connection[event_id] for event_id in old} == {None}
    assert {connection[event_id] for event_id in new} == {"CONNECTION_TYPE_WIFI"}
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []


def test_an_incompatible_schema_dead_letters_that_game_and_no_other(lakehouse: Lakehouse, sender: Sender) -> None:
    # Another type under a new field number: the registry's own rules would refuse it, a producer may not ask.
    changed = contract_text(1).replace("string session_id = 7;", "int64 session_id = 77;")
    # The column is common to all games, so only a game-specific one shows that games are apart.
    widened = contract_text(1).replace("string device_id = 6;", "string device_id = 6;\n  bool boosted = 60;")
    clashing = contract_text(1).replace("string device_id = 6;", "string device_id = 6;\n  string boosted = 61;")
    with lakehouse.ingesting():
        first = sender.send_events(10, "Archery", widened)
        lakehouse.await_rows("silver/archery_events", first)
        schema_id = sender.register(clashing)
        sender.send_bad([framed(schema_id, an_event(clashing, f"clash-{i}", "Archery")) for i in range(5)])
        other_game = sender.send_events(10, "Bingo", clashing)
        schema_id = sender.register(changed)
        sender.send_bad([framed(schema_id, an_event(changed, f"changed-{i}", "Bingo")) for i in range(5)])
        same_game = sender.send_events(10, "Archery", widened)
        lakehouse.await_rows("silver/archery_events", same_game)
        lakehouse.await_rows("silver/bingo_events", other_game)
        eventually(lambda: lakehouse.reasons() == Counter(incompatible_schema=10), timeout=60)

    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_a_schema_that_nothing_can_read_stops_no_other_game(lakehouse: Lakehouse, sender: Sender) -> None:
    field = "string device_id = 6;"
    levels = "".join(f"message M{i} {{ int32 number = 1; M{i + 1} next = 2; }}\n" for i in range(41))
    deep = contract_text(1).replace(field, f"{field} M0 deep = 60;") + f"{levels} message M41 {{ int32 number = 1; }}"
    fields = "".join(f"string field_{number} = {number};\n" for number in range(1_000, 5_100))
    wide = contract_text(1).replace(field, f"{field}\n{fields}")
    # Two names of one JSON name, which proto2 allows.
    alike = 'syntax = "proto2"; message Event { optional int32 foo_bar = 1; optional int32 fooBar = 2; }'
    values = [b"\x00" + sender.register(text).to_bytes(4, "big") + b"\x00" for text in (deep, wide, alike)]
    with lakehouse.ingesting():
        sender.send_bad(values)
        other_game = sender.send_events(10, "Bingo")
        lakehouse.await_rows("silver/bingo_events", other_game)
        eventually(lambda: sum(lakehouse.reasons().values()) == len(values), timeout=60)

    assert lakehouse.reasons() == Counter(invalid_schema=2, incompatible_schema=1)
    letters = lakehouse.rows("dead_letters/events", "value", "detail")
    assert Counter(letters["value"].to_pylist()) == Counter(values)
    assert {"30 messages", "65535 bytes", "no event_time"} == {
        word
        for word in ("30 messages", "65535 bytes", "no event_time")
        if any(word in detail for detail in letters["detail"].to_pylist())
    }
    lakehouse.ingest()
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []


def test_events_of_confluents_own_serializer_are_rows(lakehouse: Lakehouse, sender: Sender) -> None:
    imports = ("google/type/date.proto", "confluent/type/decimal.proto", "confluent/meta.proto", "schema.proto")
    source = contract_text(1).replace("import ", "".join(f'import "{name}";\n' for name in imports) + "import ", 1)
    fields = "google.type.Date day = 60; confluent.type.Decimal price = 61; other.Place place = 62;"
    source = source.replace("string device_id = 6;", f"string device_id = 6;\n{fields}")
    # The name that a schema gets where its own text does not say it.
    place = 'syntax = "proto3"; package other; message Place { string city = 1; }'
    files = compile_sources({"event.proto": source, "schema.proto": place}, "event.proto")
    event = GetMessageClass(message_at(files, (0,)))(
        event_id="1", event_name="won", game_name="Archery", gamer_id="a" * 32
    )
    event.event_time.GetCurrentTime()  # type: ignore[attr-defined] # made while the test runs
    params = event.event_params  # type: ignore[attr-defined] # made while the test runs
    params.day.year, params.day.month, params.day.day = 2026, 2, 3
    params.price.value, params.price.scale = b"\x05", 1
    params.place.city = "Bern"
    with SchemaRegistryClient({"url": lakehouse.registry_url}) as registry:
        serializer = ProtobufSerializer(type(event), registry, {"use.deprecated.format": False})
        value = serializer(event, SerializationContext(lakehouse.topic, MessageField.VALUE))
    assert value is not None
    sender.send_values(["1"], [value])

    lakehouse.ingest()

    assert lakehouse.reasons() == Counter()
    (row,) = lakehouse.rows("silver/archery_events", "day", "price", "place").to_pylist()
    assert row["day"] == date(2026, 2, 3)
    assert (row["price"]["value"], row["price"]["scale"], row["place"]) == (b"\x05", 1, {"city": "Bern"})


@pytest.mark.slow
def test_without_a_registry_known_schemas_are_read_and_unknown_ones_are_dead_lettered(
    lakehouse: Lakehouse, sender: Sender, registry: EmbeddedRegistry
) -> None:
    new_schema = contract_text(1).replace(
        "string device_id = 6;", f"string device_id = 6;\n  string {lakehouse.topic.replace('-', '_')} = 70;"
    )
    schema_id = sender.register(new_schema)
    first = sender.send_events(10, "Archery")
    with lakehouse.ingesting():
        lakehouse.await_rows("silver/archery_events", first)
        known = sender.register(contract_text(1))
        registry.stop()
        try:
            sender.send_bad([framed(schema_id, an_event(new_schema, f"unknown-{i}", "Archery")) for i in range(5)])
            eventually(lambda: lakehouse.reasons() == Counter(schema_unavailable=5), timeout=60)
            ids = [f"known-{i}" for i in range(10)]
            sender.send_values(
                ids, [framed(known, an_event(contract_text(1), event_id, "Archery")) for event_id in ids]
            )
            lakehouse.await_rows("silver/archery_events", ids)
        finally:
            registry.start()
        late = sender.send_events(10, "Bingo", new_schema)
        lakehouse.await_rows("silver/bingo_events", late)

    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []
