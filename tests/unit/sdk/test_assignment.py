"""Assignment: the SDK, DuckDB and the published vectors give each player the same variant."""

import json
from collections import Counter
from pathlib import Path

import duckdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.assignment import ENROLMENT, VARIANT, HashDialect, bucket_sql, variant_sql
from gamelake.contract.experiments import ExperimentSpec, in_buckets
from services.sdk.experiments import BUCKETS, Experiment, bucket
from tests.unit.properties import examples

VECTORS = json.loads(Path("contracts/experiment_vectors.json").read_text(encoding="utf-8"))
SPEC = msgspec.convert(
    {
        "name": "new_shop",
        "game": "kart_rumble",
        "description": "?",
        "variants": [{"name": name, "share": size / BUCKETS} for name, size in VECTORS["experiment"]["variants"]],
        "eligibility": {"share": VECTORS["experiment"]["enrolled"] / BUCKETS},
        "start": "2026-11-01",
        "primary": "bookings",
    },
    ExperimentSpec,
)
EXPERIMENT = Experiment(
    SPEC.name,
    SPEC.seed,
    in_buckets(SPEC.eligibility.share),
    [(each.name, in_buckets(each.share)) for each in SPEC.variants],
    {},
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def answers(sql: str, players: list[str]) -> list[object]:
    """DuckDB's answer for each player."""
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT {sql} FROM unnest(?) AS t(player)", [players]).fetchall()  # noqa: S608 # our SQL
    return [row[0] for row in rows]


@examples(100)
@given(st.lists(TEXTS, min_size=1))
def test_the_sdk_and_duckdb_agree_for_all_texts(players: list[str]) -> None:
    for purpose in (ENROLMENT, VARIANT):
        found = answers(bucket_sql("salt_1", purpose, "player", HashDialect.DUCKDB), players)
        assert found == [bucket("salt_1", purpose, player) for player in players]

    variants = answers(variant_sql(SPEC, "player", HashDialect.DUCKDB), players)
    assert variants == [EXPERIMENT.variant_of(player) for player in players]


def test_the_published_vectors_are_what_the_sdk_computes() -> None:
    assert [bucket(each["salt"], each["purpose"], each["player"]) for each in VECTORS["buckets"]] == [
        each["bucket"] for each in VECTORS["buckets"]
    ]
    assert [EXPERIMENT.variant_of(each["player"]) for each in VECTORS["variants"]] == [
        each["variant"] for each in VECTORS["variants"]
    ]


def test_trino_hashes_the_same_bytes() -> None:
    assert bucket_sql("new_shop", VARIANT, "name", HashDialect.TRINO) == (
        "(from_base(substr(lower(to_hex(sha256(to_utf8('new_shop/variant/' || name)))), 1, 8), 16) % 10000)"
    )


def test_players_are_divided_by_the_shares() -> None:
    number = 100_000
    found = Counter(EXPERIMENT.variant_of(f"player-{n}") for n in range(number))
    enrolled = number - found.pop(None)

    # Within five standard deviations.
    assert abs(enrolled - 0.2 * number) < 5 * (number * 0.2 * 0.8) ** 0.5
    for name, size in EXPERIMENT.variants:
        share = size / BUCKETS
        assert abs(found[name] - share * enrolled) < 5 * (enrolled * share * (1 - share)) ** 0.5


def test_a_larger_share_of_players_moves_no_player_to_another_variant() -> None:
    wider = Experiment(EXPERIMENT.name, EXPERIMENT.salt, BUCKETS, EXPERIMENT.variants, {})
    players = [f"player-{n}" for n in range(2_000)]
    before = {player: EXPERIMENT.variant_of(player) for player in players}

    assert all(wider.variant_of(player) == variant for player, variant in before.items() if variant is not None)


@pytest.mark.parametrize(
    ("context", "is_enrolled"),
    [({"platform": "ios"}, True), ({"platform": "web"}, False), ({}, False), ({"platform": ["ios"]}, False)],
)
def test_only_players_who_meet_the_conditions_are_enrolled(context: dict[str, object], is_enrolled: bool) -> None:
    experiment = Experiment("x", "x", BUCKETS, [("a", 5_000), ("b", 5_000)], {"platform": ["ios", "android"]})

    assert (experiment.variant_of("player-1", context) is not None) is is_enrolled
