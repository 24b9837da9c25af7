"""Connections that break the rules of TLS and HTTP have no effect, and valid requests among them succeed."""

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

import pytest

from tests.embedded.effort import fuzzing_seconds
from tests.embedded.fuzzed_connections import KINDS, SLOW_KINDS, Target, first_message
from tests.embedded.fuzzed_requests import MARK, as_protobuf, compressed
from tests.embedded.gateway import Gateway, body_of, events
from tests.embedded.stalled_clients import await_closed, connections
from tests.embedded.test_metrics_endpoint import certificates
from tests.embedded.topic_records import ids_in
from tests.support.process_table import descendants_of
from tools.embedded import EmbeddedKafka
from tools.embedded.ports import HOST

log = logging.getLogger(__name__)

MOST_MIB, CLIENTS = 400, 200
# Workers of each sort, and how many connections each makes unless FUZZ_SECONDS says how long.
FAST, SLOW, VALID = (6, 95), (10, 3), (2, 60)
VALID_HOST = "127.0.0.2"


@dataclass(slots=True)
class Traffic:
    """What was sent and what came back; ends with the counts of its workers, or after some seconds."""

    gateway: Gateway
    seed: int
    seconds: float | None
    results: Counter[tuple[str, str]] = field(default_factory=Counter)
    accepted_ids: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Send all of it; fails with the first error of a worker."""
        fast = sorted(KINDS.keys() - SLOW_KINDS)
        with ThreadPoolExecutor(FAST[0] + SLOW[0] + VALID[0]) as pool:
            workers: list[Future[None]] = []
            for kinds, (number, count) in ((fast, FAST), (sorted(SLOW_KINDS), SLOW)):
                randoms = [Random(f"{self.seed} {kinds[0]} {worker}") for worker in range(number)]
                workers += [pool.submit(self._fuzz, kinds, random, count) for random in randoms]
            randoms = [Random(f"{self.seed} valid {worker}") for worker in range(VALID[0])]
            workers += [pool.submit(self._send_valid, random, VALID[1]) for random in randoms]
        for worker in workers:
            worker.result()

    def _turns(self, count: int) -> Iterator[int]:
        ends = time.monotonic() + (self.seconds or 0)
        turn = 0
        while time.monotonic() < ends if self.seconds else turn < count:
            yield turn
            turn += 1

    def _fuzz(self, kinds: list[str], random: Random, count: int) -> None:
        tls = self.gateway.service.tls
        assert tls is not None
        for turn in self._turns(count):
            name = kinds[turn % len(kinds)]
            target = Target(self.gateway.port, tls, f"127.1.0.{random.randrange(1, 5)}")
            result = KINDS[name].send(target, random)
            self._count(name, result)
            assert result in KINDS[name].results, f"{name}: {result}"

    def _send_valid(self, random: Random, count: int) -> None:
        for _ in self._turns(count):
            batch = events(random.randrange(1, 60))
            rejected: list[dict[str, str | int]] = []
            if random.random() < 0.5:
                body, content_type = as_protobuf(batch), "application/x-protobuf"
            else:
                index = random.randrange(len(batch))
                batch[index]["event_name"] = 5
                rejected = [{"index": index, "reason": "wrong_type", "field": "event_name"}]
                body, content_type = body_of(batch), "application/json"
            encoding = random.choice(["identity", "gzip", "zstd"])
            reply = self.gateway.send(
                compressed(body, encoding), VALID_HOST, content_type=content_type, content_encoding=encoding
            )
            self._count("valid", str(reply.status))
            assert reply.result.rejected == rejected
            refused = {each["index"] for each in rejected}
            ids = [str(event["event_id"]) for index, event in enumerate(batch) if index not in refused]
            assert reply.result.accepted == len(ids)
            with self._lock:
                self.accepted_ids += ids

    def _count(self, kind: str, result: str) -> None:
        with self._lock:
            self.results[kind, result] += 1

    def summary(self) -> str:
        """Connections by kind and result, and the service's peak memory."""
        lines = [f"{kind}: {result} {count}" for (kind, result), count in sorted(self.results.items())]
        total = f"seed {self.seed}: {self.results.total()} connections, {len(self.accepted_ids)} events accepted"
        return "\n".join([*lines, total, f"peak {self.gateway.peak_mib():.0f} MiB"])


@pytest.fixture(scope="module")
def gateway(open_gateway: Callable[..., Gateway], tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """The service by HTTPS, with a short timeout for bodies."""
    return open_gateway(certificates(tmp_path_factory.mktemp("certificates"), "ingest"), INGEST_BODY_SECONDS="3")


@pytest.mark.slow
def test_fuzzed_connections_have_no_effect_and_valid_requests_succeed(gateway: Gateway, kafka: EmbeddedKafka) -> None:
    seconds = fuzzing_seconds()
    seed = int.from_bytes(os.urandom(4)) if seconds else 1
    processes = descendants_of(gateway.process.pid)
    traffic = Traffic(gateway, seed, seconds)

    try:
        traffic.run()
    finally:
        # With --log-cli-level=INFO pytest shows it.
        log.info(traffic.summary())

    assert {kind for kind, _ in traffic.results} == KINDS.keys() | {"valid"}
    assert {result for kind, result in traffic.results if kind == "valid"} == {"200"}
    assert descendants_of(gateway.process.pid) == processes
    assert ids_in(kafka, gateway.topic) == Counter(traffic.accepted_ids)
    assert gateway.peak_mib() < MOST_MIB
    log_file = gateway.log()
    for text in (b"Traceback", b"panicked", MARK.encode()):
        assert text not in log_file


@pytest.mark.slow
@pytest.mark.parametrize("sent", [0, 100], ids=["nothing", "half of the first message"])
def test_stalled_handshakes_are_closed_and_do_not_affect_others(gateway: Gateway, sent: int) -> None:
    tls = gateway.service.tls
    assert tls is not None

    with connections(gateway, CLIENTS, first_message(tls)[:sent]) as stalled:
        accepted = gateway.send(body_of(events(20)), VALID_HOST).result.accepted
        await_closed(stalled)

    assert accepted == 20
    assert gateway.peak_mib() < MOST_MIB


@pytest.mark.parametrize("sent", [b"", b"PRI * HTTP/2.0\r\n"], ids=["nothing", "half of HTTP/2's first line"])
def test_clients_that_are_silent_after_the_handshake_are_closed_and_do_not_affect_others(
    gateway: Gateway, sent: bytes
) -> None:
    tls = gateway.service.tls
    assert tls is not None
    tls.set_alpn_protocols(["h2", "http/1.1"])

    with connections(gateway, CLIENTS, b"") as opened, ExitStack() as wrapped:
        silent = [wrapped.enter_context(tls.wrap_socket(each, server_hostname=HOST)) for each in opened]
        for each in silent:
            each.sendall(sent)
        versions = {each.selected_alpn_protocol() for each in silent}
        accepted = gateway.send(body_of(events(20)), VALID_HOST).result.accepted
        await_closed(silent)

    assert versions == {"http/1.1"}
    assert accepted == 20
    assert gateway.peak_mib() < MOST_MIB


def test_a_request_after_fuzzed_connections_is_accepted(gateway: Gateway) -> None:
    assert gateway.send(body_of(events(1)), VALID_HOST).result.accepted == 1
