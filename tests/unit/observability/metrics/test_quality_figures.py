"""The metrics of rules, from batches, as Prometheus would read them."""

from prometheus_client import CollectorRegistry

from gamelake.ledger.manifests import Judged
from gamelake.observability.metrics.instruments import Instruments
from gamelake.observability.metrics.stream import QualityFigures
from tests.support.scraping import Scraped, scraped
from tests.unit.observability.metrics.batches import judged


def _figures(*batches: Judged) -> Scraped:
    registry = CollectorRegistry()
    figures = QualityFigures(Instruments(registry, "q"))
    for each in batches:
        figures.count(each)
    return scraped(registry)


def test_rows_are_counted_by_the_rules_that_they_broke_and_those_of_no_other_rule_are_there() -> None:
    figures = _figures(judged(), judged())

    assert figures.value("gamelake_quality_rows_evaluated_total", game="archery") == 20
    assert figures.values("gamelake_quality_rows_broken_total") == [2, 2]
    assert figures.value("gamelake_quality_rows_broken_total", game="archery", rule="paid", severity="quarantine") == 2
    assert figures.value("gamelake_quality_rows_unevaluated_total", game="archery", rule="odd") == 2
    assert figures.value("gamelake_quality_rows_dropped_total", rule="gone") == 2


def test_one_set_of_rules_is_in_force() -> None:
    figures = _figures(judged(), judged(rules="another"))

    assert len(figures.values("gamelake_quality_rules_since_timestamp_seconds")) == 1
    assert figures.value("gamelake_quality_rules_since_timestamp_seconds", fingerprint="another") > 0


def test_without_rules_none_is_in_force() -> None:
    assert _figures(judged(), Judged()).values("gamelake_quality_rules_since_timestamp_seconds") == []


def test_rules_that_are_broken_are_reported_until_they_are_good_again() -> None:
    assert _figures().value("gamelake_quality_rules_rejected") == 0
    assert _figures(judged(refused="rules.yaml:3: …")).value("gamelake_quality_rules_rejected") == 1
    assert _figures(judged(refused="rules.yaml:3: …"), judged()).value("gamelake_quality_rules_rejected") == 0
