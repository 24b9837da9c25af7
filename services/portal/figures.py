"""The health of the services and the figures of the streams: from Prometheus, or from the services themselves."""

import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from services.portal.prometheus import FiguresUnavailableError, Prometheus, Sample
from services.portal.settings import PortalSettings

_SECONDS = 2.0
_RATE_SECONDS = 60.0
_UP, _RECORDS = "gamelake_stream_up", "gamelake_stream_records_total"
_FIRING = 'count by (alertname) (ALERTS{alertstate="firing", severity!="none"})'
_LAG, _AGE = "gamelake_stream_offsets_behind", "gamelake_stream_seconds_behind"


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """The health of a service."""

    name: str
    is_healthy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFigures:
    """The figures of a stream; None is unknown.

    Attributes:
        records_per_second: over the last minute.
        lag: records in the source that are not committed.
        seconds_behind: the age of the oldest of them.
    """

    stream: str
    is_up: bool
    records_per_second: float | None = None
    lag: float | None = None
    seconds_behind: float | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the platform at a time; `problem` says why a part of it is unknown.

    Attributes:
        alerts: the names of those that fire; None: there is no Prometheus.
    """

    services: tuple[ServiceHealth, ...]
    streams: tuple[StreamFigures, ...]
    problem: str = ""
    alerts: tuple[str, ...] | None = None


class FigureSource(Protocol):
    """The source of the figures."""

    def overview(self) -> Overview:
        """Return the present state."""


class PrometheusFigures:
    """From Prometheus."""

    _BY_QUERY: ClassVar[Mapping[str, str]] = {
        _UP: f"max by (query) ({_UP})",
        _RECORDS: f"sum by (query) (rate({_RECORDS}[1m]))",
        _LAG: f'sum by (query) ({_LAG}{{statistic="sum"}})',
        _AGE: f"max by (query) ({_AGE})",
    }

    def __init__(self, prometheus: Prometheus) -> None:
        self._prometheus = prometheus

    def overview(self) -> Overview:
        """Return the state as Prometheus has it."""
        try:
            services = tuple(
                ServiceHealth(each.labels["job"], each.value == 1) for each in self._prometheus.now("min by (job) (up)")
            )
            values = {
                metric: _by_query(self._prometheus.now(expression)) for metric, expression in self._BY_QUERY.items()
            }
            alerts = tuple(sorted(each.labels["alertname"] for each in self._prometheus.now(_FIRING)))
        except FiguresUnavailableError as error:
            return Overview((), (), str(error))
        by_name = tuple(sorted(services, key=lambda each: each.name))
        return Overview(by_name, tuple(_streams(values)), alerts=alerts)


class ProbedFigures:
    """From the services themselves; rates are those between two calls of `overview`, at most a minute apart."""

    def __init__(
        self,
        probes: Mapping[str, str],
        metrics: Iterable[str],
        http: urllib3.PoolManager,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probes = probes
        self._metrics = tuple(metrics)
        self._http = http
        self._clock = clock
        self._earlier: deque[tuple[float, Mapping[str, float]]] = deque()

    def overview(self) -> Overview:
        """Probe all of them, at the same time."""
        with ThreadPoolExecutor(max(1, len(self._probes) + len(self._metrics))) as pool:
            health = list(pool.map(self._is_healthy, self._probes.values()))
            pages = list(pool.map(self._page, self._metrics))
        services = tuple(map(ServiceHealth, self._probes, health))
        # The lag also has the least, the mean and the largest of a partition.
        samples = [
            (name, each)
            for page in pages
            for name, each in metric_samples(page)
            if each.labels.get("statistic", "sum") == "sum"
        ]
        values = {metric: _by_query(each for name, each in samples if name == metric) for metric in (_UP, _LAG, _AGE)}
        totals = _by_query(each for name, each in samples if name == _RECORDS)
        return Overview(services, tuple(_streams({**values, _RECORDS: self._rates(totals)})))

    def _rates(self, totals: Mapping[str, float]) -> dict[str, float]:
        now = self._clock()
        while self._earlier and now - self._earlier[0][0] > _RATE_SECONDS:
            self._earlier.popleft()
        rates = {}
        if self._earlier:
            then, before = self._earlier[0]
            # A counter begins at 0 again when its process does.
            rates = {
                query: (total - before[query] if total >= before[query] else total) / max(now - then, 1e-3)
                for query, total in totals.items()
                if query in before
            }
        self._earlier.append((now, totals))
        return rates

    def _is_healthy(self, address: str) -> bool:
        parts = urlsplit(address)
        if parts.scheme == "tcp":
            try:
                socket.create_connection((parts.hostname or "", parts.port or 0), timeout=_SECONDS).close()
            except OSError:
                return False
            return True
        try:
            return self._http.request("GET", address).status == 200  # noqa: PLR2004 - OK
        except urllib3.exceptions.HTTPError:
            return False

    def _page(self, address: str) -> str:
        try:
            return self._http.request("GET", address).data.decode("utf-8", "replace")
        except urllib3.exceptions.HTTPError:
            return ""


def metric_samples(page: str) -> Iterator[tuple[str, Sample]]:
    """Yield the samples of a metrics page, with their metric's name.

    Only those before the end of an incomplete page.
    """
    try:
        for family in text_string_to_metric_families(page):
            for each in family.samples:
                yield each.name, Sample(each.labels, each.value)
    except ValueError:
        return


def prometheus_of(settings: PortalSettings) -> Prometheus | None:
    """Return the client of the portal's Prometheus, if it has one."""
    return None if settings.prometheus is None else Prometheus(settings.prometheus, _http(settings))


def figure_source(settings: PortalSettings) -> FigureSource:
    """Return Prometheus if there is one, else the probes of the services."""
    prometheus = prometheus_of(settings)
    if prometheus is not None:
        return PrometheusFigures(prometheus)
    return ProbedFigures(settings.probes, settings.metrics, _http(settings))


def _http(settings: PortalSettings) -> urllib3.PoolManager:
    # More readers than connections wait: they must not slow Prometheus' rules down.
    options: dict[str, Any] = {"timeout": _SECONDS, "retries": False, "maxsize": 4, "block": True}
    if settings.tls is not None:
        certificate = str(settings.tls.certificate)
        options |= {"cert_file": certificate, "key_file": certificate, "ca_certs": str(settings.tls.clients)}
    return urllib3.PoolManager(**options)


def _by_query(samples: Iterable[Sample]) -> dict[str, float]:
    """The sums by query; topics and tables have series of their own."""
    found: dict[str, float] = {}
    for each in samples:
        query = each.labels.get("query", "")
        found[query] = found.get(query, 0) + each.value
    return found


def _streams(values: Mapping[str, Mapping[str, float]]) -> Iterator[StreamFigures]:
    for query, is_up in sorted(values[_UP].items()):
        yield StreamFigures(
            stream=query,
            is_up=is_up == 1,
            records_per_second=values[_RECORDS].get(query),
            lag=values[_LAG].get(query),
            seconds_behind=values[_AGE].get(query),
        )
