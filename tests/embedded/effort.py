"""The effort of tests with random moments and bodies: little by default, more when the environment says so."""

import os

from hypothesis import HealthCheck, settings


def seeds(few: int) -> range:
    """The seeds of a test: `few`, or as many as FAULT_SEEDS says."""
    return range(int(os.environ.get("FAULT_SEEDS", few)))


def fuzzing(few: int = 300) -> settings:
    """The same few examples at every run, or as many others as FUZZ_EXAMPLES says."""
    more = os.environ.get("FUZZ_EXAMPLES")
    return settings(
        max_examples=int(more or few),
        derandomize=more is None,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


def fuzzing_seconds() -> float | None:
    """Return how long connections are fuzzed, at random: FUZZ_SECONDS; None for the same few at every run."""
    seconds = os.environ.get("FUZZ_SECONDS")
    return float(seconds) if seconds else None


def outage_seconds(few: float) -> float:
    """Return how long something is away: `few` seconds, or as long as OUTAGE_SECONDS says."""
    return float(os.environ.get("OUTAGE_SECONDS", few))


def hostile_queries(few: int = 200) -> int:
    """Return how many hostile queries an agent asks: `few`, or as many as HOSTILE_QUERIES says."""
    return int(os.environ.get("HOSTILE_QUERIES", few))
