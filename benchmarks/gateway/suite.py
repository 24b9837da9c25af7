"""The benchmark: runs of all loads one after another, a steady load, an outage of Kafka, and the memory meanwhile."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import uvloop

from benchmarks.gateway.bodies import JSON, PROTOBUF, Bodies, Body
from benchmarks.gateway.client import LoadClient, Responses
from benchmarks.gateway.results import OURS, OURS_BY_HTTPS, PEER, Load, Memory
from benchmarks.gateway.services import HttpsGateway, MeasuredGateway, PeerGateway
from benchmarks.stopwatch import Stopwatch
from gamelake.schemas.event_schemas import load_schema
from tools.embedded import EmbeddedServices
from tools.embedded.gateway import GatewayBackend
from tools.embedded.kafka import create_topic
from tools.embedded.service import REPOSITORY

Log = Callable[[str], None]

BATCH = 50
_TOPIC, _PARTITIONS = "gateway", 4
_GAME_NAME = "Archery Duel"
_CONNECTIONS = 64
_BODIES, _SINGLE_BODIES = 400, 4000
_SHARE = 0.7
_FULL_CONNECTIONS, _FULL_EVENTS, _FULL_BODIES = 512, 250, 40
_OK = 200
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Lengths:
    """The number of runs, and how long each part lasts, in seconds."""

    runs: int
    load: float
    steady: float
    outage: float


@dataclass(slots=True)
class Suite:
    """The gateway, the same by HTTPS, and its peer, all running, and the results."""

    ours: MeasuredGateway
    https: HttpsGateway
    peer: PeerGateway
    kafka_pid: int
    lengths: Lengths
    log: Log
    bodies: dict[tuple[str, int], list[Body]] = field(default_factory=dict)
    all_players: list[Body] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)

    async def run(self) -> None:
        """Measure everything."""
        bodies = Bodies(load_schema(REPOSITORY / "contracts" / "submitted" / "v3", 3).message, _GAME_NAME)
        for content, events, count in ((JSON, BATCH, _BODIES), (PROTOBUF, BATCH, _BODIES), (JSON, 1, _SINGLE_BODIES)):
            self.bodies[content, events] = bodies.make(content, count, events)
        self.bodies[JSON, _FULL_EVENTS] = bodies.make(JSON, _FULL_BODIES, _FULL_EVENTS)
        self.all_players = bodies.all_players(JSON, BATCH)
        for gateway in (self.ours, self.https, self.peer):
            await self._warm_up(gateway)
        for number in range(1, self.lengths.runs + 1):
            await self._run_loads(number)
        for content in (JSON, PROTOBUF):
            await self._steady(content)
        await self._outage()

    async def _warm_up(self, gateway: MeasuredGateway) -> None:
        """Send all players and each kind of body to a service, to fill its caches."""
        sender = gateway.sender()
        async with LoadClient(sender, _CONNECTIONS) as client:
            responses = await client.send_at_full_speed(sender.each_once(self.all_players), float("inf"))
            for (content, _), some in self.bodies.items():
                if gateway is not self.peer or content == JSON:
                    await client.send_at_full_speed(sender.requests(some), self.lengths.load / 4)
        self.log(f"{gateway.name}: has all players in its cache, {dict(responses.statuses)}")

    async def _run_loads(self, number: int) -> None:
        for gateway, content, events in (
            (self.ours, JSON, BATCH), (self.https, JSON, BATCH), (self.peer, JSON, BATCH), (self.ours, PROTOBUF, BATCH),
            (self.https, PROTOBUF, BATCH), (self.ours, JSON, 1),
        ):  # fmt: skip
            await self._load(gateway, content, events, number)

    async def _steady(self, content: str) -> None:
        """The gateway alone, at a share of its highest rate."""
        limit = median(each.requests_per_second for each in self.loads if _is(each, OURS, content, BATCH))
        await self._load(self.ours, content, BATCH, 1, rate=_SHARE * limit)

    async def _load(self, gateway: MeasuredGateway, content: str, events: int, number: int, rate: float = 0) -> None:
        sender = gateway.sender()
        requests = sender.requests(self.bodies[content, events])
        async with LoadClient(sender, _CONNECTIONS) as client:
            watch, cpu = Stopwatch.start(self.kafka_pid, gateway.process.pid), time.process_time()
            watcher = asyncio.ensure_future(_each_second(gateway.resident_mib))
            if rate:
                responses = await client.send_at_rate(requests, rate, self.lengths.steady)
            else:
                responses = await client.send_at_full_speed(requests, self.lengths.load)
            lap, cpu = watch.stop(), time.process_time() - cpu
        load = Load(
            service=self._name(gateway), content=content, events_per_request=events, run=number,
            connections=_CONNECTIONS, rate=round(rate, 1), accepted=responses.statuses[_OK],
            refused=len(responses.seconds) - responses.statuses[_OK], p50=_milliseconds(responses, 0.5),
            p99=_milliseconds(responses, 0.99), lap=lap, sender_cpu_seconds=round(cpu, 2),
        )  # fmt: skip
        self.loads.append(load)
        if gateway is self.ours:
            self._note(f"{content} by {events}{', steady' if rate else ''}", await _stopped(watcher), responses)
        else:
            await _stopped(watcher)
        self.log(
            f"{load.service}, {content} by {events}{f', at {rate:.0f} requests/s' if rate else ''}: "
            f"{load.events_per_second:,.0f} events/s, {load.events_per_cpu_second:,.0f} per CPU second, "
            f"p99 {load.p99} ms, {load.refused} refused"
        )

    def _name(self, gateway: MeasuredGateway) -> str:
        """What the results call it."""
        if gateway is self.peer:
            return PEER
        return OURS_BY_HTTPS if gateway is self.https else OURS

    async def _outage(self) -> None:
        """Kafka is suspended while more events come than may wait for it, and then resumed."""
        sender = self.ours.sender()
        requests = sender.requests(self.bodies[JSON, _FULL_EVENTS])
        for stretch, stop in (("Kafka away", True), ("Kafka back", False)):
            async with LoadClient(sender, _FULL_CONNECTIONS) as client:
                if stop:
                    os.kill(self.kafka_pid, signal.SIGSTOP)
                watcher = asyncio.ensure_future(_each_second(self.ours.resident_mib))
                try:
                    seconds = self.lengths.outage if stop else self.lengths.steady
                    responses = await client.send_at_full_speed(requests, seconds)
                finally:
                    os.kill(self.kafka_pid, signal.SIGCONT)
                self._note(stretch, await _stopped(watcher), responses)

    def _note(self, stretch: str, mib: tuple[float, ...], responses: Responses) -> None:
        statuses = {str(status): count for status, count in sorted(responses.statuses.items())}
        self.memory.append(Memory(stretch=stretch, mib=mib, statuses=statuses))
        self.log(f"memory, {stretch}: {max(mib):.0f} MiB at most, {mib[-1]:.0f} at the end, {statuses}")


def run(directory: Path, lengths: Lengths, log: Log) -> Suite:
    """Start all services, measure, and remove the directory."""
    with EmbeddedServices(directory / "services") as services:
        create_topic(services.kafka.bootstrap_servers, _TOPIC, _PARTITIONS)
        backend = GatewayBackend(
            bootstrap_servers=services.kafka.bootstrap_servers, registry_url=services.registry.url, topic=_TOPIC
        )
        suite = Suite(
            MeasuredGateway(directory / "gateway", backend), HttpsGateway(directory / "https", backend),
            PeerGateway(directory / "peer", backend),
            services.kafka.process.pid, lengths, log,
        )  # fmt: skip
        for gateway in (suite.ours, suite.https, suite.peer):
            gateway.start()
        try:
            uvloop.run(suite.run())
        finally:
            for gateway in (suite.ours, suite.https, suite.peer):
                gateway.stop()
    shutil.rmtree(directory)
    return suite


def _is(load: Load, service: str, content: str, events: int) -> bool:
    return (load.service, load.content, load.events_per_request) == (service, content, events)


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
