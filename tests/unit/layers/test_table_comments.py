"""Every column of every table that the contract makes says what it means."""

from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from gamelake.contract.aggregates import Over
from gamelake.contract.games import GamesContract
from gamelake.delta.columns import delta_field, delta_schema_json
from gamelake.delta.comments import commented, uncommented
from gamelake.layers.bronze import BRONZE_PARTITION, BRONZE_SCHEMA
from gamelake.layers.comments import EventComments
from gamelake.layers.dead_letters import dead_letter_schema
from gamelake.layers.silver import COMMON_SCHEMA, EVENT_DATE, conform
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.schemas.compiler import ROOT_FILE, compile_sources, message_at
from gamelake.schemas.decoder import MessageDecoder
from gamelake.schemas.schema_cache import schema_path
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.runner import aggregate_comments

VERSIONS = sorted(Path("contracts/proto").glob("v*"))
CONTRACT = load_gold(Path("contracts/games.yaml"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A lakehouse that has seen every version of the event."""
    store = Store(Location(uri=tmp_path.as_uri()))
    for number, folder in enumerate(VERSIONS, start=1):
        store.put(schema_path(number), _compiled(folder).SerializeToString())
    return store


def _compiled(folder: Path) -> FileDescriptorSet:
    return compile_sources({ROOT_FILE: (folder / "game_event.proto").read_text()})


def _silver_schema(folder: Path) -> pa.Schema:
    _, columns = MessageDecoder(message_at(_compiled(folder), (0,))).decode(pa.array([], pa.binary()))
    none = pa.array([], pa.int64())
    return conform(columns, none, none).schema


def _kept(schema: pa.Schema, partition: str) -> str:
    return delta_schema_json(pa.schema([*map(delta_field, schema), pa.field(partition, pa.date32())]))


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_every_column_of_a_games_table_has_a_comment(store: Store, folder: Path) -> None:
    comments = EventComments(CONTRACT, store)("silver/kart_rumble_events")

    assert uncommented(commented(_kept(_silver_schema(folder), EVENT_DATE), comments)) == []
    assert "Kart Rumble" in comments.description


@pytest.mark.parametrize(
    ("table", "schema", "partition"),
    [
        (SILVER_EVENTS, COMMON_SCHEMA, EVENT_DATE),
        (BRONZE_EVENTS, BRONZE_SCHEMA, BRONZE_PARTITION),
        (DEAD_LETTERS, dead_letter_schema(BRONZE_SCHEMA), BRONZE_PARTITION),
    ],
)
def test_every_column_of_a_table_of_all_games_has_a_comment(
    store: Store, table: str, schema: pa.Schema, partition: str
) -> None:
    comments = EventComments(CONTRACT, store)(table)

    assert uncommented(commented(_kept(schema, partition), comments)) == []
    assert comments.description


def test_every_column_of_an_aggregate_has_a_comment() -> None:
    for spec in CONTRACT.aggregates:
        comments = aggregate_comments(CONTRACT, spec, "kart_rumble")

        assert set(comments.columns) == {*spec.group_by, *spec.columns}, spec.name
        assert ("Kart Rumble" in comments.description) == (spec.over is Over.EACH_GAME)


def test_the_comments_of_the_newest_schema_win(tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    sources = ["// Old words.\n", "// New words.\n", ""]
    for number, comment in enumerate(sources, start=9):
        text = f'syntax = "proto3"; message Event {{\n{comment}string app_name = 1;\n}}'
        store.put(schema_path(number), compile_sources({ROOT_FILE: text}).SerializeToString())

    comments = EventComments(GamesContract(games=CONTRACT.games), store)("silver/chess_events")

    assert comments.columns == {"app_name": "New words."}


def _with_comment(number: int, comment: str) -> bytes:
    fields = f"// {comment}\nstring app_name = 1;\n// Number {number}.\nstring c{number} = 2;"
    return compile_sources({ROOT_FILE: f'syntax = "proto3"; message Event {{\n{fields}\n}}'}).SerializeToString()


def test_each_schema_is_read_once_however_many_tables_ask(tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    comments = EventComments(GamesContract(games=CONTRACT.games), store)
    for number in (2, 5):
        store.put(schema_path(number), _with_comment(number, f"Words of {number}."))
    first = comments("silver/chess_events").columns
    for number in (2, 5):
        store.put(schema_path(number), b"not read again")

    assert comments("silver/kart_rumble_events").columns.items() >= first.items()
    assert first == {"app_name": "Words of 5.", "c2": "Number 2.", "c5": "Number 5."}

    store.put(schema_path(3), _with_comment(3, "Words of 3."))
    assert comments("silver/chess_events").columns == {**first, "c3": "Number 3."}
    store.put(schema_path(7), _with_comment(7, "Words of 7."))
    assert comments("silver/chess_events").columns["app_name"] == "Words of 7."
