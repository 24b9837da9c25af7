"""The benchmark: runs of all loads one after another, a steady load, an outage of Kafka, and the memory meanwhile."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

import uvloop

from benchmarks.documents import Report, circumstances, goals_table, subjects_table
from benchmarks.gateway.bodies import JSON, PROTOBUF, Bodies, Body
from benchmarks.gateway.client import LoadClient, Responses
from benchmarks.gateway.services import HttpsGateway, MeasuredGateway, PeerGateway, leave_a_core
from benchmarks.goals import Figure, Goal, figure_of, ratio
from benchmarks.harness import Benchmark, Emit, Run, option
from benchmarks.results import Measurement, Results, Values
from benchmarks.stopwatch import Lap, Stopwatch
from gamelake.schemas.event_schemas import load_schema
from tools.embedded import EmbeddedServices
from tools.embedded.gateway import GatewayBackend
from tools.embedded.kafka import create_topic
from tools.embedded.service import REPOSITORY

LOADS, MEMORY = "loads", "memory"
OURS, OURS_BY_HTTPS, PEER = "gateway", "gateway by HTTPS", "FastAPI + aiokafka"
BATCH = 50
_NAMES = {JSON: "JSON", PROTOBUF: "Protobuf"}
_TOPIC, _PARTITIONS = "gateway", 4
_GAME_NAME = "Archery Duel"
_CONNECTIONS = 64
_BODIES, _SINGLE_BODIES = 400, 4000
_SHARE = 0.7
_FULL_CONNECTIONS, _FULL_EVENTS, _FULL_BODIES = 512, 250, 40
_OK = 200

# Service, type of content, events of a request.
Kind: TypeAlias = tuple[str, str, int]
_KINDS: tuple[Kind, ...] = (
    (OURS, JSON, BATCH),
    (OURS_BY_HTTPS, JSON, BATCH),
    (PEER, JSON, BATCH),
    (OURS, PROTOBUF, BATCH),
    (OURS_BY_HTTPS, PROTOBUF, BATCH),
    (OURS, JSON, 1),
)


@dataclass(frozen=True, slots=True)
class GatewayLoads:
    """Options of the benchmark; lengths are in seconds."""

    runs: int = option(3, "rounds of all loads")
    load: float = option(8.0, "seconds of each load")
    steady: float = option(15.0, "seconds of the steady load")
    outage: float = option(60.0, "seconds for which Kafka is suspended")


@dataclass(slots=True)
class Suite:
    """The gateway, the same by HTTPS, and its peer, all running, and the results."""

    gateways: dict[str, MeasuredGateway]
    kafka_pid: int
    settings: GatewayLoads
    emit: Emit
    bodies: dict[tuple[str, int], list[Body]] = field(default_factory=dict)
    all_players: list[Body] = field(default_factory=list)
    samples: list[Measurement] = field(default_factory=list)

    async def run(self) -> None:
        """Measure everything."""
        bodies = Bodies(load_schema(REPOSITORY / "contracts" / "submitted" / "v3", 3).message, _GAME_NAME)
        for content, events, count in ((JSON, BATCH, _BODIES), (PROTOBUF, BATCH, _BODIES), (JSON, 1, _SINGLE_BODIES)):
            self.bodies[content, events] = bodies.make(content, count, events)
        self.bodies[JSON, _FULL_EVENTS] = bodies.make(JSON, _FULL_BODIES, _FULL_EVENTS)
        self.all_players = bodies.all_players(JSON, BATCH)
        for name in self.gateways:
            await self._warm_up(name)
        for number in range(1, self.settings.runs + 1):
            for kind in _KINDS:
                await self._load(kind, number)
        for content in (JSON, PROTOBUF):
            kind = (OURS, content, BATCH)
            highest = (LOADS, subject_of(kind))
            rates = [each.values["requests/s"] for each in self.samples if (each.part, each.subject) == highest]
            await self._load(kind, 1, rate=_SHARE * median(rates))
        await self._outage()

    async def _warm_up(self, name: str) -> None:
        """Send all players and each kind of body to a service, to fill its caches."""
        sender = self.gateways[name].sender()
        async with LoadClient(sender, _CONNECTIONS) as client:
            responses = await client.send_at_full_speed(sender.each_once(self.all_players), float("inf"))
            for (content, _), some in self.bodies.items():
                if name != PEER or content == JSON:
                    await client.send_at_full_speed(sender.requests(some), self.settings.load / 4)
        self.emit(f"{name}: has all players in its cache, {dict(responses.statuses)}")

    async def _load(self, kind: Kind, number: int, rate: float = 0) -> None:
        """Send as fast as the service takes it, or at a rate of requests per second."""
        name, content, events = kind
        gateway, subject = self.gateways[name], subject_of(kind, is_steady=bool(rate))
        sender = gateway.sender()
        requests = sender.requests(self.bodies[content, events])
        async with LoadClient(sender, _CONNECTIONS) as client:
            watch, cpu = Stopwatch.start(self.kafka_pid, gateway.process.pid), time.process_time()
            watcher = asyncio.ensure_future(_each_second(gateway.resident_mib))
            if rate:
                responses = await client.send_at_rate(requests, rate, self.settings.steady)
            else:
                responses = await client.send_at_full_speed(requests, self.settings.load)
            lap, cpu = watch.stop(), time.process_time() - cpu
        values = _values(responses, events, lap, cpu) | ({"asked requests/s": round(rate, 1)} if rate else {})
        self.samples.append(Measurement(part=LOADS, subject=subject, round=number, values=values))
        self.emit(f"{subject}: {values}")
        mib = await _stopped(watcher)
        if name == OURS:
            self._note(subject, number, mib, responses)

    async def _outage(self) -> None:
        """Suspend Kafka while more events come than may wait for it, then resume it."""
        ours = self.gateways[OURS]
        sender = ours.sender()
        requests = sender.requests(self.bodies[JSON, _FULL_EVENTS])
        for stretch, stop in (("Kafka away", True), ("Kafka back", False)):
            async with LoadClient(sender, _FULL_CONNECTIONS) as client:
                if stop:
                    os.kill(self.kafka_pid, signal.SIGSTOP)
                watcher = asyncio.ensure_future(_each_second(ours.resident_mib))
                try:
                    seconds = self.settings.outage if stop else self.settings.steady
                    responses = await client.send_at_full_speed(requests, seconds)
                finally:
                    os.kill(self.kafka_pid, signal.SIGCONT)
                self._note(stretch, 1, await _stopped(watcher), responses)

    def _note(self, stretch: str, number: int, mib: tuple[float, ...], responses: Responses) -> None:
        values = memory_values(mib) | {
            f"responses {status}": count for status, count in sorted(responses.statuses.items())
        }
        self.samples.append(Measurement(part=MEMORY, subject=stretch, round=number, values=values))
        self.emit(f"memory, {stretch}: {values}")


def subject_of(kind: Kind, *, is_steady: bool = False) -> str:
    """Return the name of a load in results."""
    name, content, events = kind
    return f"{name}, {_NAMES[content]} by {events}{', at 70 %' if is_steady else ''}"


def _values(responses: Responses, events: int, lap: Lap, sender_cpu_seconds: float) -> Values:
    accepted = responses.statuses[_OK]
    others = max((lap.other_cpu_seconds or 0) - sender_cpu_seconds, 0)
    cores = {
        "cores of the service": lap.cpu_seconds,
        "cores of Kafka": lap.kafka_cpu_seconds,
        "cores of the sender": sender_cpu_seconds,
        "cores of others": others,
    }
    return {
        "events/s": round(accepted * events / lap.seconds, 1),
        "requests/s": round(accepted / lap.seconds, 1),
        "events per CPU s": round(accepted * events / (lap.cpu_seconds or float("nan")), 1),
        "p50 ms": _milliseconds(responses, 0.5),
        "p99 ms": _milliseconds(responses, 0.99),
        "refused": len(responses.seconds) - accepted,
        **{name: round((used or 0) / lap.seconds, 2) for name, used in cores.items()},
    }


def memory_values(mib: tuple[float, ...]) -> Values:
    """Return the figures of samples that were taken each second."""
    middle = mib[len(mib) // 2]
    return {
        "MiB at most": max(mib),
        "at first": mib[0],
        "at the end": mib[-1],
        "growth MiB": round(mib[-1] - middle, 1),
    }


def measure(run: Run[GatewayLoads]) -> list[Measurement]:
    """Start all services, each measured one alone on a core, and measure."""
    leave_a_core()
    # For the services' own processes.
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    with EmbeddedServices(run.folder / "services") as services:
        create_topic(services.kafka.bootstrap_servers, _TOPIC, _PARTITIONS)
        backend = GatewayBackend(
            bootstrap_servers=services.kafka.bootstrap_servers, registry_url=services.registry.url, topic=_TOPIC
        )
        gateways = {
            OURS: MeasuredGateway(run.folder / "gateway", backend),
            OURS_BY_HTTPS: HttpsGateway(run.folder / "https", backend),
            PEER: PeerGateway(run.folder / "peer", backend),
        }
        suite = Suite(gateways, services.kafka.process.pid, run.settings, run.emit)
        for gateway in gateways.values():
            gateway.start()
        try:
            uvloop.run(suite.run())
        finally:
            for gateway in gateways.values():
                gateway.stop()
    return suite.samples


def _milliseconds(responses: Responses, share: float) -> float:
    seconds = sorted(responses.seconds)
    return round(1000 * seconds[min(int(share * len(seconds)), len(seconds) - 1)], 2) if seconds else float("nan")


async def _each_second(sample: Callable[[], float]) -> list[float]:
    found: list[float] = []
    try:
        while True:
            found.append(round(sample(), 1))
            await asyncio.sleep(1)
    except asyncio.CancelledError:
        return [*found, round(sample(), 1)]


async def _stopped(watcher: "asyncio.Future[list[float]]") -> tuple[float, ...]:
    watcher.cancel()
    return tuple(await watcher)


def _rate(content: str, events: int = BATCH, figure: str = "events/s") -> Figure:
    return figure_of(LOADS, subject_of((OURS, content, events)), figure)


def _times(content: str, name: str, other: str) -> Figure:
    return ratio(LOADS, "events/s", subject_of((name, content, BATCH)), subject_of((other, content, BATCH)))


def _steady_p99(content: str) -> Figure:
    """Latency counts only if no request was refused."""
    subject = subject_of((OURS, content, BATCH), is_steady=True)
    return lambda results: [
        float("inf") if each.values["refused"] else each.values["p99 ms"] for each in results.of(LOADS, subject)
    ]


def _greatest(figure: str) -> Figure:
    def values(results: Results) -> list[float]:
        found = [each.values[figure] for each in results.of(MEMORY)]
        return [max(found)] if found else []

    return values


GOALS = (
    Goal("JSON events/s in batches of 50", (60_000, 80_000), _rate(JSON)),
    Goal("Protobuf events/s in batches of 50", (100_000, 150_000), _rate(PROTOBUF)),
    Goal("HTTPS: rate, relative to HTTP, JSON", (0.9,), _times(JSON, OURS_BY_HTTPS, OURS)),
    Goal("HTTPS: rate, relative to HTTP, Protobuf", (0.9,), _times(PROTOBUF, OURS_BY_HTTPS, OURS)),
    Goal("rate, relative to FastAPI + aiokafka with the same bodies", (4,), _times(JSON, OURS, PEER)),
    Goal("requests/s with one event each", (6_000, 10_000), _rate(JSON, 1, "requests/s")),
    Goal("p99 at 70 % of the highest rate, JSON", (50, 30), _steady_p99(JSON), " ms", at_most=True),
    Goal("p99 at 70 % of the highest rate, Protobuf", (50, 30), _steady_p99(PROTOBUF), " ms", at_most=True),
    Goal(
        "memory at the highest rate, and while Kafka is stopped",
        (400,),
        _greatest("MiB at most"),
        " MiB",
        at_most=True,
    ),
    Goal("its growth in the second half of a load", (20,), _greatest("growth MiB"), " MiB", at_most=True),
)

BENCHMARK = Benchmark(
    name="gateway",
    measures="Measure the ingest gateway and its peer on one core.",
    settings=GatewayLoads(),
    quick=GatewayLoads(runs=1, load=3.0, steady=4.0, outage=20.0),
    measure=measure,
    goals=GOALS,
    report=Report(
        page=(
            circumstances("the service on one, Kafka, the registry and the sender on the other"),
            goals_table(GOALS),
        ),
        appendix=(subjects_table(LOADS, "load", "events/s", "events per CPU s", "p50 ms", "p99 ms"),),
    ),
)
