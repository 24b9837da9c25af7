"""What makes an event the same event, and which events are known: checked against the plainest way to do it."""

import uuid
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.layers.identity import Identities
from gamelake.layers.known_events import Events, KnownEvents, repeated
from gamelake.model.errors import StoreError
from tests.unit.properties import examples

WINDOW = 600
_IDS = st.one_of(st.uuids().map(str), st.text(min_size=1, max_size=90), st.sampled_from(["a", "b", "aa", "a\0", "\0"]))
_SIGHTINGS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3_000)), max_size=60)


def numbers(table: str, ids: list[str], seed: str = "seed") -> list[tuple[int, int]]:
    high, rest = Identities(seed).of([table], np.zeros(len(ids), np.int64), pa.array(ids, pa.string()))
    return list(zip(high.tolist(), rest.tolist(), strict=True))


@examples(100)
@given(ids=st.lists(_IDS, min_size=1, max_size=40))
def test_two_ids_have_the_same_identity_if_and_only_if_they_are_equal(ids: list[str]) -> None:
    found = numbers("silver/archery_events", ids)

    assert [found.index(each) for each in found] == [ids.index(each) for each in ids]


def test_an_identity_does_not_depend_on_other_ids_of_the_batch() -> None:
    ids = [str(uuid.UUID(int=number << 64 | number)) for number in range(50)]
    whole = pa.array(["x", *ids, "a longer one", "y" * 65])

    high, rest = Identities("seed").of(["silver/archery_events"], np.zeros(51, np.int64), whole.slice(1, 51))

    assert list(zip(high.tolist(), rest.tolist(), strict=True))[:50] == numbers("silver/archery_events", ids)


def test_an_identity_is_of_one_table_and_of_one_stream() -> None:
    (archery,), (bingo,) = numbers("silver/archery_events", ["e"]), numbers("silver/bingo_events", ["e"])
    (other_stream,) = numbers("silver/archery_events", ["e"], seed="another")

    assert len({archery, bingo, other_stream}) == 3


def test_each_of_the_96_bits_of_identities_is_about_as_often_1_as_0() -> None:
    ids = [f"session-7-event-{number:06d}" for number in range(20_000)]
    high, rest = Identities("seed").of(["silver/archery_events"], np.zeros(len(ids), np.int64), pa.array(ids))

    bits = np.concatenate([np.unpackbits(high.view(np.uint8)), np.unpackbits(rest.astype("<u4").view(np.uint8))])

    assert rest.max() < 2**32
    for share in (*bits[: 64 * 20_000].reshape(-1, 64).mean(0), *bits[64 * 20_000 :].reshape(-1, 32).mean(0)):
        assert share == pytest.approx(0.5, abs=0.1)


def events(sightings: list[tuple[int, int]]) -> Events:
    """Events by a small number each, and seconds; several numbers share the first half of their identity."""
    high = np.array([number // 3 for number, _ in sightings], np.uint64)
    rest = np.array([number % 3 for number, _ in sightings], np.uint64)
    return Events.of(high, rest, np.array([seconds for _, seconds in sightings], np.int64))


def one_by_one(sightings: list[tuple[int, int]], kept: list[tuple[int, int]]) -> list[bool]:
    """Find the sightings that are duplicates, as one would say it; the others are added to the kept ones."""
    again = []
    for number, seconds in sightings:
        again.append(any(number == other and abs(seconds - moment) <= WINDOW for other, moment in kept))
        if not again[-1]:
            kept.append((number, seconds))
    return again


@examples(200)
@given(sightings=_SIGHTINGS)
def test_the_first_of_equal_events_is_kept_and_others_within_the_window_are_duplicates(
    sightings: list[tuple[int, int]],
) -> None:
    assert repeated(events(sightings), WINDOW).tolist() == one_by_one(sightings, [])


@examples(200)
@given(batches=st.lists(_SIGHTINGS, max_size=8))
def test_known_events_are_found_whatever_batches_added_them(batches: list[list[tuple[int, int]]]) -> None:
    known = KnownEvents(WINDOW)
    kept: list[tuple[int, int]] = []
    for batch in batches:
        found = known.have(events(batch))
        new = events(batch).take(~found)
        again = repeated(new, WINDOW)
        found[np.flatnonzero(~found)[again]] = True
        known.add(new.take(~again))

        assert found.tolist() == one_by_one(batch, kept)


def test_events_that_are_too_old_are_deleted_within_a_quarter_of_the_window() -> None:
    known, in_window = KnownEvents(WINDOW), 100 * (WINDOW // 10 + 1)
    for second in range(0, 6_000, 10):
        high = np.arange(100, dtype=np.uint64) + np.uint64(second * 1_000)
        known.add(Events.of(high, high % np.uint64(7), np.full(100, second)), oldest=second - WINDOW)

        assert len(known) < 1.3 * in_window
    assert len(known) >= in_window


def test_scratch_files_with_nothing_but_events_that_are_too_old_are_deleted() -> None:
    known, in_window = KnownEvents(WINDOW), 100 * (WINDOW // 10 + 1)
    for second in range(0, 6_000, 10):
        high = np.arange(100, dtype=np.uint64) + np.uint64(second * 1_000)
        known.add(Events.of(high, high % np.uint64(7), np.full(100, second)), oldest=second - WINDOW)
        while known.in_memory > in_window // 8:
            known.spill()

        assert len(known) < 1.3 * in_window
    assert known.spilled >= in_window - in_window // 8


def test_a_full_scratch_disk_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    known = KnownEvents(WINDOW)
    known.add(events([(1, 5)]))

    with pytest.raises(StoreError, match="Let TMPDIR name a disk with room"):
        known.spill()
    assert known.have(events([(1, 5)])).tolist() == [True]


def test_events_are_the_same_after_encoding_and_decoding() -> None:
    some = events([(1, 5), (2, 7), (4, 2**32 - 1)])

    again = Events.decode(some.encode())

    assert (again.high.tolist(), again.rest.tolist(), again.seconds.tolist()) == (
        some.high.tolist(),
        some.rest.tolist(),
        some.seconds.tolist(),
    )
    assert len(some.encode()) == 16 * len(some)


@examples(50)
@given(st.lists(st.uuids(), min_size=1, max_size=5), st.randoms())
def test_a_uuid_has_one_identity_in_upper_lower_and_mixed_case(uuids: list[uuid.UUID], random: Random) -> None:
    lower = [str(each) for each in uuids]
    mixed = ["".join(random.choice((letter, letter.upper())) for letter in text) for text in lower]

    expected = numbers("silver/kart", lower)

    assert numbers("silver/kart", [text.upper() for text in lower]) == expected
    assert numbers("silver/kart", mixed) == expected


@pytest.mark.parametrize(
    "text",
    [
        "0D6B1F1E-4B0E-4C3A-9D3C-0F2F5A3C7B1G",
        "0D6B1F1E-4B0E-4C3A-9D3C_0F2F5A3C7B11",
        "0D6B1F1E04B0E-4C3A-9D3C-0F2F5A3C7B11",
        "0D6B1F1E-4B0E-4C3A-9D3C-0F2F5A3C7B1",
        "A" * 36,
        "-" * 35 + "A",
    ],
)
def test_the_case_of_another_id_counts(text: str) -> None:
    assert numbers("silver/kart", [text]) != numbers("silver/kart", [text.lower()])
