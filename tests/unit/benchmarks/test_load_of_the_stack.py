"""A load of the stack: which rate counts as sustained, and the price of a million events."""

import pytest

from benchmarks.scaling.costs import CostSettings, MillionEvents
from benchmarks.stack.throughput import SUSTAINED, LoadSample, samples_of


def sustained(*samples: tuple[float, int, int]) -> float:
    """What a load of 1,000 events/s sustained, given seconds, records sent and records taken."""
    load = [LoadSample(seconds=seconds, sent=sent, taken=taken) for seconds, sent, taken in samples]
    (whole,) = (each for each in samples_of(1_000, load) if each.part == SUSTAINED)
    return whole.values["sustained events/s"]


def test_a_load_that_came_into_kafka_and_into_tables_is_sustained() -> None:
    assert sustained((0, 0, 0), (30, 29_900, 29_800), (60, 60_000, 59_500)) == 1_000


def test_of_a_load_that_the_tables_did_not_follow_only_what_they_took_counts() -> None:
    assert sustained((0, 0, 0), (30, 30_000, 24_000), (60, 60_000, 48_000)) == 800


def test_a_load_is_not_sustained_while_more_and_more_records_are_behind() -> None:
    assert sustained((0, 14_000, 0), (60, 74_000, 58_000)) < 1_000


def test_the_price_of_a_million_events_is_that_of_all_its_parts() -> None:
    cost = MillionEvents(cpu={"gateway": 3_600.0}, writes=1_000, reads=1_000, body_bytes=1e6, stored_bytes=2**30)
    prices = CostSettings(
        vcpu_hour=1.0, utilisation=0.5, thousand_writes=3.0, thousand_reads=1.0, gib_month=0.5, months=2
    )

    dollars = {each.subject: each.values["dollars"] for each in prices.samples(cost)}

    assert dollars == pytest.approx(
        {"gateway": 2, "requests to the object store": 4, "storage for 2 months": 1, "sum": 7}
    )
