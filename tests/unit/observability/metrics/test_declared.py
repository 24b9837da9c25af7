"""Instruments are made from their declarations, and from nothing else."""

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from gamelake.model.errors import ContractError
from gamelake.observability.metrics.declared import METRICS_FILE, counter, declarations, gauge, gauge_family, histogram


def test_a_metric_that_is_not_declared_is_refused_with_the_file_that_lacks_it() -> None:
    with pytest.raises(ContractError, match=rf"gamelake_stream_upp is not declared; add it to {METRICS_FILE}"):
        gauge(CollectorRegistry(), "gamelake_stream_upp", "query")


@pytest.mark.parametrize(
    ("create", "name", "labels"),
    [
        (counter, "gamelake_stream_up", ["query"]),
        (gauge, "gamelake_stream_records_total", ["query"]),
        (histogram, "gamelake_stream_up", ["query"]),
        (gauge, "gamelake_stream_up", []),
        (gauge, "gamelake_stream_up", ["game"]),
        (counter, "gamelake_stream_rows_total", ["layer", "query"]),
    ],
    ids=["a gauge as a counter", "a counter", "a histogram", "no label", "another label", "labels in another order"],
)
def test_a_metric_of_another_type_or_with_other_labels_is_refused_by_name(
    create: Callable[..., object], name: str, labels: list[str]
) -> None:
    with pytest.raises(ContractError, match=rf"the code wants {name} to be a {create.__name__} with"):
        create(CollectorRegistry(), name, *labels)


def test_a_family_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(ContractError, match="gamelake_stream_records_total"):
        gauge_family("gamelake_stream_records_total", "query")


def test_a_histogram_has_the_declared_buckets() -> None:
    registry = CollectorRegistry()

    histogram(registry, "gamelake_portal_question_seconds").observe(0.15)

    bounds = [float(each.labels["le"]) for each in next(iter(registry.collect())).samples if "le" in each.labels]
    assert tuple(bounds[:-1]) == declarations()["gamelake_portal_question_seconds"].buckets
    assert registry.get_sample_value("gamelake_portal_question_seconds_bucket", {"le": "0.2"}) == 1
    assert registry.get_sample_value("gamelake_portal_question_seconds_bucket", {"le": "0.1"}) == 0
