"""The events of one kilobyte: their size, their content, and how far they can be compressed."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from benchmarks.long_events import LongEventEncoder, long_attributes
from benchmarks.traffic import CONTRACTS, GAME_NAMES, VERSIONS, write_contract
from gamelake.contract.games import load_games
from gamelake.schemas.decoder import MessageDecoder
from gamelake.schemas.event_schemas import load_schemas
from gamelake.schemas.framing import unframe
from gamelake.schemas.text_lengths import too_long_texts
from tools.simulator.spec import NO_BAD_EVENTS, TrafficSpec
from tools.simulator.traffic import TrafficGenerator

EVENTS = 5_000
NEWEST = load_schemas(CONTRACTS, VERSIONS)[-1]


@pytest.fixture(scope="module")
def values() -> pa.BinaryArray:
    spec = TrafficSpec(game_names=GAME_NAMES[:1], versions=1, events=EVENTS, shares=NO_BAD_EVENTS)
    batches = TrafficGenerator(spec, [LongEventEncoder(NEWEST, 7)]).batches()
    return pa.concat_arrays([batch.values for batch in batches])


def test_a_record_value_has_a_kilobyte(values: pa.BinaryArray) -> None:
    sizes = [len(value) for value in values.to_pylist()]

    assert len(sizes) == EVENTS
    assert 1_014 < sum(sizes) / EVENTS < 1_034


def test_the_values_can_be_compressed_by_half_and_not_much_further(values: pa.BinaryArray) -> None:
    content = b"".join(values.to_pylist())

    assert 0.4 < len(zstandard.compress(content, 1)) / len(content) < 0.5


def test_each_event_decodes_with_five_attributes(values: pa.BinaryArray) -> None:
    (group,) = unframe(values).groups
    rows, events = MessageDecoder(NEWEST.message).decode(group.bodies)

    assert len(rows) == EVENTS
    assert {tuple(name for name, _ in each) for each in events.column("attributes").to_pylist()} == {
        ("moves", "state", "trace_id", "device", "settings")
    }
    assert set(events.column("game_name").to_pylist()) == {GAME_NAMES[0]}


def test_no_text_of_an_event_is_too_long_for_the_benchmarks_contract(values: pa.BinaryArray, tmp_path: Path) -> None:
    lengths = load_games(write_contract(tmp_path, 1)).lengths
    (group,) = unframe(values).groups
    _, events = MessageDecoder(NEWEST.message).decode(group.bodies)
    columns = zip(events.schema.names, events.columns, strict=True)

    assert [
        found for name, column in columns for found in too_long_texts(column, name, lengths, with_bytes=False)
    ] == []


def test_no_events_have_no_attributes() -> None:
    assert len(long_attributes(0, np.random.default_rng(1))) == 0
