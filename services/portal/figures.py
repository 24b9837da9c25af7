"""The health of the services and the figures of the streams: from Prometheus, or from the services themselves."""

import math
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import urlsplit

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from services.portal.prometheus import FiguresUnavailableError, Prometheus, Sample
from services.portal.remedies import RestartCommands
from services.portal.settings import PortalSettings

_SECONDS = 2.0
_RATE_SECONDS = 60.0
_UP, _RECORDS = "gamelake_stream_up", "gamelake_stream_records_total"
_LAG, _AGE = "gamelake_stream_offsets_behind", "gamelake_stream_seconds_behind"
# The alert StreamLagGrows regards streams from the first number on, and StreamTooFarBehind fires from the second on.
_SECONDS_LATE, _SECONDS_BEHIND = 60, 300
_HISTORY_SECONDS, _HISTORY_STEP = 3_600, 60


class Level(StrEnum):
    """The rating of a figure, which is its colour on the pages."""

    PLAIN = "plain"
    GOOD = "good"
    LATE = "late"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """The health of a service; `remedy` is the command that restarts it, if the portal knows it."""

    name: str
    is_healthy: bool
    remedy: str = ""


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

    @property
    def level(self) -> Level:
        """The rating by the thresholds of the alerts."""
        if not self.is_up or (self.seconds_behind or 0) > _SECONDS_BEHIND:
            return Level.BAD
        return Level.LATE if (self.seconds_behind or 0) > _SECONDS_LATE else Level.GOOD

    @property
    def state(self) -> str:
        """The rating in words."""
        if not self.is_up:
            return "is down"
        return {Level.GOOD: "runs", Level.LATE: "falls behind"}.get(self.level, "is behind")


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the platform at a time.

    Attributes:
        problem: why a part of it is unknown; empty if nothing is.
        alerts: the names of those that fire; None: there is no Prometheus, or it does not respond.
        remedy: the command that helps with the problem, if one is known.
        freshness: the seconds behind of the stream that was furthest behind, over the last hour, oldest first.
        firing: the number of firing alerts over the last hour, oldest first.
    """

    services: tuple[ServiceHealth, ...]
    streams: tuple[StreamFigures, ...]
    problem: str = ""
    alerts: tuple[str, ...] | None = None
    remedy: str = ""
    freshness: tuple[float, ...] = ()
    firing: tuple[float, ...] = ()


class FigureSource(Protocol):
    """The source of the figures."""

    def overview(self) -> Overview:
        """Return the present state."""


class PrometheusFigures:
    """From Prometheus.

    Args:
        prometheus: the server.
        restarts: the command for each service that does not respond.
        namespace: of the series to read; empty: all of them.
    """

    def __init__(self, prometheus: Prometheus, restarts: RestartCommands, namespace: str = "") -> None:
        self._prometheus = prometheus
        self._restarts = restarts
        own = f'namespace="{namespace}"' if namespace else ""
        # Alerts over sums have no namespace.
        own_alerts = f', namespace=~"|{namespace}"' if namespace else ""
        self._health = f"min by (job) (up{{{own}}})"
        self._by_query = {
            _UP: f"max by (query) ({_UP}{{{own}}})",
            _RECORDS: f"sum by (query) (rate({_RECORDS}{{{own}}}[1m]))",
            _LAG: f'sum by (query) ({_LAG}{{statistic="sum",{own}}})',
            _AGE: f"max by (query) ({_AGE}{{{own}}})",
        }
        self._worst_age = f"max({_AGE}{{{own}}})"
        self._firing = f'count by (alertname) (ALERTS{{alertstate="firing", severity!="none"{own_alerts}}})'

    def overview(self) -> Overview:
        """Return the state as Prometheus has it."""
        try:
            services = tuple(
                ServiceHealth(each.labels["job"], each.value == 1, self._restarts.of_job(each.labels["job"]))
                for each in self._prometheus.now(self._health)
            )
            values = {
                metric: _by_query(self._prometheus.now(expression)) for metric, expression in self._by_query.items()
            }
            alerts = tuple(sorted(each.labels["alertname"] for each in self._prometheus.now(self._firing)))
            freshness = self._last_hour(self._worst_age)
            firing = self._last_hour(f"count({self._firing}) or vector(0)")
        except FiguresUnavailableError as error:
            return Overview((), (), str(error), remedy=self._restarts.of_job("prometheus"))
        by_name = tuple(sorted(services, key=lambda each: each.name))
        return Overview(by_name, tuple(_streams(values)), alerts=alerts, freshness=freshness, firing=firing)

    def _last_hour(self, expression: str) -> tuple[float, ...]:
        now = time.time()
        series = self._prometheus.over_time(expression, now - _HISTORY_SECONDS, now, _HISTORY_STEP)
        return tuple(value for each in series[:1] for _, value in each.points)


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
        self._freshness: deque[tuple[float, float]] = deque()

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
        streams = tuple(_streams({**values, _RECORDS: self._rates(totals)}))
        return Overview(services, streams, freshness=self._history(values[_AGE]))

    def _history(self, ages: Mapping[str, float]) -> tuple[float, ...]:
        """Note the present age, at most once a minute, and return those of the last hour."""
        now, worst = self._clock(), max(ages.values(), default=None)
        if worst is not None and (not self._freshness or now - self._freshness[-1][0] >= _HISTORY_STEP):
            self._freshness.append((now, worst))
        while self._freshness and now - self._freshness[0][0] > _HISTORY_SECONDS:
            self._freshness.popleft()
        return tuple(value for _, value in self._freshness)

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
    """Yield the samples of a metrics page that have a finite value, with their metric's name.

    Only those before the end of an incomplete page.
    """
    try:
        for family in text_string_to_metric_families(page):
            for each in family.samples:
                if math.isfinite(each.value):
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
        return PrometheusFigures(prometheus, settings.restarts, settings.namespace)
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
