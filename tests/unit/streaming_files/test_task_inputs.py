"""Objects are divided evenly and always in the same way between tasks, and event coordinates are unique."""

from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gamelake.ledger.coordinates import MOST_EVENTS
from gamelake.streaming.files.arrivals.notifications import ObjectName
from gamelake.streaming.files.coordinates import ObjectPosition, notification_of, object_coordinates
from gamelake.streaming.files.plan import NamedObject, task_inputs
from tests.unit.properties import examples

MIB = 2**20


def named(number: int, size: int, partition: int = 0) -> NamedObject:
    name = ObjectName(bucket="landing", key=f"{number}.json", version="", etag="e")
    place = ObjectPosition(partition=partition, offset=number, index=0, microseconds=0)
    return NamedObject(position=place, name=name, size=size, value=b"")


@examples(60)
@given(st.lists(st.integers(0, 200 * MIB), min_size=1, max_size=60), st.integers(1, 8), st.randoms())
def test_every_object_is_in_one_task_input_and_always_the_same_one(
    sizes: list[int], cores: int, random: Random
) -> None:
    objects = [named(number, size) for number, size in enumerate(sizes)]
    shares = task_inputs(objects, (), cores, {})

    assert sorted(each.position.offset for share in shares for each in share.objects) == list(range(len(sizes)))
    random.shuffle(objects)
    assert task_inputs(objects, (), cores, {}) == shares


def test_a_small_batch_is_one_task_and_a_large_one_uses_all_cores() -> None:
    assert len(task_inputs([named(n, 1000) for n in range(20)], (), 4, {})) == 1
    assert len(task_inputs([named(n, 75_000) for n in range(200)], (), 4, {})) == 4
    shares = task_inputs([named(n, 10 * MIB) for n in range(40)], (), 4, {})

    loads = [sum(each.size for each in share.objects) for share in shares]
    assert len(shares) % 4 == 0
    assert max(loads) <= 1.5 * min(loads)


@examples(100)
@given(st.integers(0, 10**6), st.integers(0, 2**34), st.integers(0, 15), st.integers(0, MOST_EVENTS - 1))
def test_an_events_coordinates_lead_back_to_its_notification(
    partition: int, offset: int, index: int, number: int
) -> None:
    place = ObjectPosition(partition=partition, offset=offset, index=index, microseconds=5)

    assert notification_of(place.events_partition, place.first_offset + number) == (partition, offset)
    assert place.first_offset + number < 2**63


def test_records_have_the_coordinates_and_the_name_of_their_file() -> None:
    places = [named(number, 1, partition=number) for number in (3, 4)]
    records = object_coordinates([(each.position, each.name) for each in places]).records(
        pa.array([b"a", b"b", b"c"], pa.binary()), np.array([0, 0, 1]), np.array([0, 1, 0])
    )

    assert records.column("partition").to_pylist() == [-4, -4, -5]
    assert np.diff(records.column("offset").to_numpy()).tolist()[0] == 1
    [first, *_] = records.column("headers").to_pylist()
    assert {each["key"]: each["value"] for each in first} == {"bucket": b"landing", "object": b"3.json", "etag": b"e"}
