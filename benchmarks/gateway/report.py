"""Writes the results of a run into docs/performance.md."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.gateway.bodies import JSON, PROTOBUF
from benchmarks.gateway.results import OURS, OURS_BY_HTTPS, PEER, GatewayResults, Load
from benchmarks.gateway.suite import BATCH
from benchmarks.report import put_between_markers, table
from benchmarks.targets import STEPS, TargetVerdict

# Bounds in two steps.
_WANTED = {JSON: (60_000, 80_000), PROTOBUF: (100_000, 150_000)}
_WANTED_REQUESTS, _WANTED_P99 = (6_000, 10_000), (50.0, 30.0)
_WANTED_TIMES, _WANTED_MIB, _WANTED_HTTPS_SHARE = 4.0, 400.0, 0.9
_NAMES = {JSON: "JSON", PROTOBUF: "Protobuf"}
# Memory may differ by so much between the middle and the end of a stretch.
_FLAT_MIB = 20.0


def write_report(results: GatewayResults, document: Path) -> None:
    """Put the tables between the document's markers.

    Raises:
        MarkersMissingError: the document has no markers.
    """
    put_between_markers(
        document, "measured at the gateway", [_circumstances(results), summary(results), *_parts(results)]
    )


def summary(results: GatewayResults) -> str:
    """The targets and the measured values."""
    rows = [
        *(row for content in (JSON, PROTOBUF) for row in _rate_rows(results, content)),
        *(_https_row(results, content) for content in (JSON, PROTOBUF)),
        _times_row(results),
        *_single_rows(results),
        *(row for content in (JSON, PROTOBUF) for row in _latency_rows(results, content)),
        _memory_row(results),
    ]
    return table(["figure", "to reach", "measured: median (least to greatest)", "verdict"], rows)


def _circumstances(results: GatewayResults) -> str:
    sizes = " and ".join(f"{size} bytes as {_NAMES[content]}" for content, size in results.bytes_per_event.items())
    return (
        f"Measured on {results.measured_at[:10]} at commit `{results.commit}`, on {results.cores} cores "
        f"({results.cpu_model}): the service on one, Kafka, the registry and the sender on the other. An "
        f"event has {sizes}."
    )


def _rate_rows(results: GatewayResults, content: str) -> list[list[str]]:
    rates = [each.events_per_second for each in results.of(OURS, content, BATCH)]
    what = f"events/s in batches of {BATCH} as {_NAMES[content]}, acknowledged by Kafka"
    return _rows_of_steps(what, _WANTED[content], rates)


def _rows_of_steps(what: str, wanted: Sequence[int], rates: Sequence[float]) -> list[list[str]]:
    return [
        [f"{what}: {step}", f"{bound:,}", _spread(rates), _verdict(bool(rates) and median(rates) >= bound)]
        for step, bound in zip(STEPS, wanted, strict=True)
    ]


def _https_row(results: GatewayResults, content: str) -> list[str]:
    pairs = zip(results.of(OURS_BY_HTTPS, content, BATCH), results.of(OURS, content, BATCH), strict=True)
    shares = [https.events_per_second / http.events_per_second for https, http in pairs]
    found = f"{median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})" if shares else "-"
    reached = bool(shares) and median(shares) >= _WANTED_HTTPS_SHARE
    return [
        f"by HTTPS, share of the rate by HTTP, {_NAMES[content]}",
        f"{_WANTED_HTTPS_SHARE:.0%}",
        found,
        _verdict(reached),
    ]


def _times_row(results: GatewayResults) -> list[str]:
    pairs = zip(results.of(OURS, JSON, BATCH), results.of(PEER, JSON, BATCH), strict=True)
    times = [ours.events_per_second / peer.events_per_second for ours, peer in pairs]
    found = f"{median(times):.1f} ({min(times):.1f} to {max(times):.1f})" if times else "-"
    return [
        "times FastAPI + aiokafka, the same bodies",
        f"{_WANTED_TIMES:g}",
        found,
        _verdict(bool(times) and median(times) >= _WANTED_TIMES),
    ]


def _single_rows(results: GatewayResults) -> list[list[str]]:
    rates = [each.requests_per_second for each in results.of(OURS, JSON, 1)]
    return _rows_of_steps("requests/s with one event each", _WANTED_REQUESTS, rates)


def _latency_rows(results: GatewayResults, content: str) -> list[list[str]]:
    steady = results.of(OURS, content, BATCH, steady=True)
    found = ", ".join(f"{each.p99} ms (p50 {each.p50} ms) at {each.rate * BATCH:,.0f} events/s" for each in steady)
    return [
        [
            f"p99 at 70 % of the limit, {_NAMES[content]}: {step}",
            f"at most {bound:g} ms",
            found or "-",
            _verdict(bool(steady) and all(each.p99 <= bound and not each.refused for each in steady)),
        ]
        for step, bound in zip(STEPS, _WANTED_P99, strict=True)
    ]


def _memory_row(results: GatewayResults) -> list[str]:
    most = max((max(each.mib) for each in results.memory), default=0.0)
    grows = max((each.mib[-1] - each.mib[len(each.mib) // 2] for each in results.memory), default=0.0)
    found = f"{most:.0f} MiB at most; from the middle of a stretch to its end {grows:+.0f} MiB at most"
    reached = bool(results.memory) and most <= _WANTED_MIB and grows <= _FLAT_MIB
    return ["memory at the limit and with the broker away", f"{_WANTED_MIB:g} MiB, flat", found, _verdict(reached)]


def _parts(results: GatewayResults) -> list[str]:
    cores = ["cores of the service", "of Kafka", "of the sender", "of others"]
    head = ["service", "bodies", "run", "events/s", "events per CPU second", "p50 ms", "p99 ms", "refused", *cores]
    parts = [table(head, [_load_row(each) for each in results.loads])]
    rows = [
        [each.stretch, f"{each.mib[0]:.0f}", f"{max(each.mib):.0f}", f"{each.mib[-1]:.0f}",
         ", ".join(f"{status}: {count:,}" for status, count in each.statuses.items())]
        for each in results.memory
    ]  # fmt: skip
    return [*parts, table(["the gateway's memory", "MiB at first", "at most", "at the end", "responses"], rows)]


def _load_row(load: Load) -> list[str]:
    seconds, lap = load.lap.seconds, load.lap
    others = (lap.other_cpu_seconds or 0) - load.sender_cpu_seconds
    steady = f", {load.rate:.0f} requests/s" if load.rate else ""
    return [
        load.service,
        f"{_NAMES[load.content]} by {load.events_per_request}{steady}",
        f"{load.run}",
        f"{load.events_per_second:,.0f}",
        f"{load.events_per_cpu_second:,.0f}",
        f"{load.p50:.1f}",
        f"{load.p99:.1f}",
        f"{load.refused:,}",
        *(f"{(used or 0) / seconds:.2f}" for used in (lap.cpu_seconds, lap.kafka_cpu_seconds, load.sender_cpu_seconds)),
        f"{max(others, 0) / seconds:.2f}",
    ]


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})" if values else "-"


def _verdict(reached: bool) -> str:
    return TargetVerdict.REACHED if reached else TargetVerdict.FALLS_SHORT
