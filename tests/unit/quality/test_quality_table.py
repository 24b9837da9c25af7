"""gold/quality: each batch counts once."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from gamelake.ledger.manifests import Judged, Manifests, RuleCount
from gamelake.model.naming import QUALITY
from gamelake.objects.store import Location, Store
from gamelake.quality.daily import QualityTable, store_rules
from gamelake.quality.rules import RuleSet
from tests.support.manifests import a_manifest, offsets_of
from tests.unit.quality.rules_and_rows import a_rule, loaded


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Location(uri=(tmp_path / "lake").as_uri()))


@pytest.fixture
def rules(tmp_path: Path) -> RuleSet:
    return loaded(tmp_path / "rules", a_rule(), a_rule("of_pool", games=["pool"], severity="warn"))


def _batch(store: Store, rules: RuleSet, number: int, *, stream: str = "s", day: str = "2026-01-01") -> None:
    counts = tuple(
        RuleCount(game="chess", rule="paid", fingerprint=rule.fingerprint, severity="quarantine", broken=3, unjudged=1)
        for rule in rules.rules[:1]
    )
    rows = {"chess": 10, "pool": 5} if rules.rules else {}
    manifest = a_manifest(
        stream=stream,
        batch_id=number,
        written_at=f"{day}T12:00:00+00:00",
        offsets=(offsets_of(0, 0),),
        judged=Judged(rules=rules.fingerprint, rows=rows, counts=counts),
    )
    Manifests(store, stream).settle(manifest)


def _rows(store: Store) -> dict[tuple[str, str, str], tuple[int, int]]:
    found = DeltaTable(store.location.child(QUALITY)).to_pyarrow_table().to_pylist()
    return {(str(row["day"]), row["game"], row["rule"]): (row["judged"], row["broken"]) for row in found}


def test_batches_are_summed_by_day_game_and_rule(store: Store, rules: RuleSet) -> None:
    store_rules(store, rules)
    _batch(store, rules, 0)
    _batch(store, rules, 1)
    _batch(store, rules, 2, day="2026-01-02")

    assert QualityTable(store, "s").catch_up() == 3

    assert _rows(store) == {
        ("2026-01-01", "chess", "paid"): (18, 6),
        ("2026-01-01", "pool", "paid"): (10, 0),
        ("2026-01-01", "pool", "of_pool"): (10, 0),
        ("2026-01-02", "chess", "paid"): (9, 3),
        ("2026-01-02", "pool", "paid"): (5, 0),
        ("2026-01-02", "pool", "of_pool"): (5, 0),
    }


def test_a_batch_counts_once_in_any_number_of_updates(store: Store, rules: RuleSet) -> None:
    store_rules(store, rules)
    _batch(store, rules, 0)
    QualityTable(store, "s").catch_up()
    _batch(store, rules, 1)

    assert [QualityTable(store, "s").catch_up() for _ in range(3)] == [1, 0, 0]

    assert _rows(store)["2026-01-01", "chess", "paid"] == (18, 6)


def test_two_streams_write_one_table(store: Store, rules: RuleSet) -> None:
    store_rules(store, rules)
    for stream in ("s", "other"):
        _batch(store, rules, 0, stream=stream)
        QualityTable(store, stream).catch_up()

    assert _rows(store)["2026-01-01", "chess", "paid"] == (18, 6)


def test_batches_without_rules_create_no_table_and_are_skipped(
    store: Store, rules: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamelake.quality.daily._BATCHES_AT_ONCE", 2)
    for number in range(5):
        _batch(store, RuleSet(), number)
    assert QualityTable(store, "s").catch_up() == 0
    assert not DeltaTable.is_deltatable(store.location.child(QUALITY))

    store_rules(store, rules)
    _batch(store, rules, 5)
    assert QualityTable(store, "s").catch_up() == 2
    assert _rows(store)["2026-01-01", "pool", "paid"] == (5, 0)
