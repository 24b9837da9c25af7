"""Series of a bad hour, for all metrics that panels read: gone games, a gone driver, a hanging query, infinity.

What is in no document, such as the labels of Kafka's metrics, is as the stack's services expose it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from gamelake.observability.metrics.declared import MetricDeclaration

STEP = 15
SAMPLES = 200
# Samples before the end at which what has gone ends.
GONE_SINCE = 100

GONE_GAME, GONE_QUERY, HANGING_QUERY, RESTARTING_JOB = "zz_gone", "live_ops", "ingest_files", "delivery"
GAMES = (*(f"game_{number:02}" for number in range(30)), GONE_GAME)
QUERIES = ("ingest_events", HANGING_QUERY, GONE_QUERY)
JOBS = [
    "alertmanager",
    "audit",
    "catalog",
    "delivery",
    "ingest",
    "ingest-events",
    "ingest-files",
    "kafka",
    "live-ops",
    "maintenance-scheduler",
    "node-exporter",
    "object-store",
    "portal",
    "prometheus",
    "registry",
    "serving",
    "spark-master",
    "spark-worker",
    "trino",
]
TABLES = (*(f"silver/{game}_events" for game in GAMES), "gold/kpi_daily", "gold/kpi_late", "silver/events")

Labels = Mapping[str, str]

_VALUES: dict[str, tuple[str, ...]] = {
    "query": QUERIES,
    "game": GAMES,
    "title": GAMES,
    "table": TABLES,
    "topic": ("events",),
    "window": ("1d", "7d", "30d"),
    "quantile": ("0.5", "0.9", "0.99"),
    "after": ("1d", "7d", "30d"),
    "kind": ("silent", "events_fall", "bookings_fall", "errors_rise"),
    "measure": ("events", "purchases", "bookings"),
    "task": tuple(f"task_{number}" for number in range(12)),
    "span": ("kafka", "tables", "backups", "backup_interval", "restore_window", "longest_query"),
    "longer": ("kafka", "tables"),
    "shorter": ("restore_window",),
    "statistic": ("min", "avg", "max", "sum"),
    "layer": ("bronze", "silver", "dead_letters", "quarantine"),
    "rule": ("positive_price", "known_player"),
    "severity": ("warn", "quarantine"),
    "fingerprint": ("4f1d",),
    "reason": tuple(f"reason_{number}" for number in range(16)),
    "action": ("erased", "exported"),
    "status": ("200", "400", "401", "429", "503"),
    "phase": ("decide", "commit", "query_planning", "latest_offset", "wal_commit", "trigger_execution", "add_batch"),
    "key": tuple(f"key_{number}" for number in range(15)),
    "outcome": ("ok", "failed"),
    "experiment": ("kart_new_offer", "archery_short_tutorial"),
    "result": ("split", "default", "disabled", "not_found", "invalid", "throttled"),
    "service": ("gateway", "kafka", "trino"),
}
# The labels of some metrics, by the start of their names.
_OF_METRICS: Mapping[str, dict[str, tuple[str, ...]]] = {
    "gamelake_audit_": {"table": ("queries", "support_calls")},
    "gamelake_files_notifications_ignored": {"reason": ("repeated", "removed", "outside_prefix", "no_object")},
}
_OF_RECORDED: Mapping[str, tuple[str, ...]] = {
    "gamelake:game_rows:rate10m": ("query", "game"),
    "gamelake:ingest_events_rejected:rate10m": ("game",),
    "gamelake:ingest_requests:rate5m": ("status",),
    "gamelake:stream_offsets_behind:deriv10m": ("query",),
    "gamelake:stream_records:rate5m": ("query",),
}
_TOPICS = tuple({"topic": name} for name in ("events", "files.notifications", "audit.queries", "live-ops.signals"))
_HEAP = tuple({"job": job, "area": "heap"} for job in ("kafka", "registry"))
_COUNTERS: Mapping[str, tuple[Labels, ...]] = {
    "alertmanager_notifications_failed_total": ({},),
    "alertmanager_notifications_total": ({},),
    "kafka_topic_bytes_total": tuple({**topic, "direction": way} for topic in _TOPICS for way in ("in", "out")),
    "kafka_topic_records_in_total": _TOPICS,
    "minio_s3_requests_rejected_auth_total": ({},),
    "minio_s3_requests_total": tuple({"api": f"api{number}"} for number in range(20)),
    "minio_s3_traffic_received_bytes_total": ({},),
    "minio_s3_traffic_sent_bytes_total": ({},),
    "node_cpu_seconds_total": ({"instance": "host", "mode": "idle"},),
    "prometheus_notifications_dropped_total": ({},),
    "rest_requests_seconds_count": ({"status_code_group": "2xx"},),
    **{
        f"trino_execution_name_QueryManager_{kind}Failures_total": ({},)
        for kind in ("External", "InsufficientResources", "Internal", "UserError")
    },
}
_GAUGES: Mapping[str, tuple[Labels, ...]] = {
    "gamelake:host_disk_free:ratio": ({"instance": "host", "device": "vda1"},),
    "agroal_active_count": ({"job": "registry"},),
    "agroal_awaiting_count": ({"job": "registry"},),
    "jvm_memory_max_bytes": _HEAP,
    "jvm_memory_used_bytes": _HEAP,
    "kafka_controller_active": ({},),
    "kafka_controller_offline_partitions": ({},),
    "kafka_log_size_bytes": _TOPICS,
    "kafka_request_seconds": ({"request": "Fetch", "percentile": "99"}, {"request": "Produce", "percentile": "99"}),
    "kafka_server_under_replicated_partitions": ({},),
    "metrics_jvm_heap_max_Value": ({"job": "spark-master", "instance": "spark-master:8480"},),
    "metrics_jvm_heap_used_Value": ({"job": "spark-master", "instance": "spark-master:8480"},),
    "metrics_master_aliveWorkers_Value": ({},),
    "metrics_master_waitingApps_Value": ({},),
    "metrics_worker_coresFree_Value": ({},),
    "metrics_worker_coresUsed_Value": ({},),
    "metrics_worker_memFree_MB_Value": ({},),
    "metrics_worker_memUsed_MB_Value": ({},),
    "minio_cluster_capacity_usable_free_bytes": ({},),
    "minio_cluster_capacity_usable_total_bytes": ({},),
    "minio_cluster_drive_offline_total": ({},),
    "minio_node_process_resident_memory_bytes": ({"job": "object-store"},),
    "node_memory_MemAvailable_bytes": ({"instance": "host"},),
    "node_memory_MemTotal_bytes": ({"instance": "host"},),
    "process_resident_memory_bytes": tuple({"job": job} for job in JOBS if job not in {"object-store", "ingest"}),
    "prometheus_tsdb_head_series": ({},),
    "scrape_duration_seconds": tuple({"job": job} for job in JOBS),
    "trino_execution_name_QueryManager_QueuedQueries": ({},),
    "trino_execution_name_QueryManager_RunningQueries": ({},),
    "trino_memory_type_MemoryPool_name_general_MaxBytes": ({},),
    "trino_memory_type_MemoryPool_name_general_ReservedBytes": ({},),
}


@dataclass(frozen=True, slots=True)
class BadHour:
    """Builds the series; `end` is the time of the last sample."""

    end: int

    def exposition(self, declared: Mapping[str, Iterable[MetricDeclaration]]) -> str:
        """All samples in OpenMetrics' text format, of the declared metrics of each program and of others."""
        lines = [line for source in declared for metric in declared[source] for line in self._declared(source, metric)]
        for name, names in _OF_RECORDED.items():
            lines += [line for labels in _combinations(names) for line in self._gauge(name, labels, 5.0)]
        # The rule looks back a day, so that it has games that have gone.
        for game in GAMES:
            silence = {"query": QUERIES[0], "game": game}
            lines += [_line("gamelake:game_silence_seconds", silence, 5.0, time) for _, time in self._times({})]
        for name, series in _COUNTERS.items():
            lines += [line for labels in series for line in self._counter(name, labels)]
        for name, series in _GAUGES.items():
            lines += [line for labels in series for line in self._gauge(name, labels, 1.0)]
        lines += [*self._services(), *self._alerts()]
        return "\n".join([*lines, "# EOF", ""])

    def _declared(self, source: str, metric: MetricDeclaration) -> Iterator[str]:
        name, unit = metric.name, metric.unit
        if source == "endpoint":
            yield from self._gauge(name, {"job": "audit"}, self.end + 1e6 if unit == "timestamp" else 1.0)
            return
        for position, labels in enumerate(_combinations(metric.labels, name)):
            # The first series of each metric reports what has never happened.
            is_never = position == 0 and unit == "timestamp" and "query" not in labels and len(labels) > 0
            yield from self._series(metric, labels, 0.0 if is_never else self._usual(metric, labels))

    def _series(self, metric: MetricDeclaration, labels: Labels, value: float) -> Iterator[str]:
        name = metric.name
        if metric.type == "counter":
            yield from self._counter(name, labels)
        elif metric.type == "histogram":
            for suffix in ("_sum", "_count"):
                yield from self._counter(name + suffix, labels)
            for bound in ("0.1", "1", "+Inf"):
                yield from self._counter(f"{name}_bucket", {**labels, "le": bound})
        elif name == "gamelake_ingest_memory_bytes":
            yield from self._gauge(name, {"job": "ingest"}, 1e8)
        else:
            yield from self._gauge(name, labels, value)

    def _usual(self, metric: MetricDeclaration, labels: Labels) -> float:
        name, hangs = metric.name, labels.get("query") == HANGING_QUERY
        if metric.unit == "timestamp":
            return self.end - (600.0 if hangs else 20.0)
        if _is_infinite(name, labels):
            return float("inf")
        if name == "gamelake_stream_seconds_behind" and hangs:
            return 700.0
        # The game that has gone was the largest of all.
        return 9.0 if GONE_GAME in labels.values() else 1.0

    def _counter(self, name: str, labels: Labels) -> Iterator[str]:
        rate = 100 if GONE_GAME in labels.values() else 10
        stands = labels.get("query") == HANGING_QUERY
        for number, time in self._times(labels):
            yield _line(name, labels, 0.0 if stands else rate * number, time)

    def _gauge(self, name: str, labels: Labels, value: float) -> Iterator[str]:
        for _, time in self._times(labels):
            yield _line(name, labels, value, time)

    def _times(self, labels: Labels) -> Iterator[tuple[int, int]]:
        is_gone = GONE_GAME in " ".join(labels.values()) or labels.get("query") == GONE_QUERY
        for number in range(SAMPLES - (GONE_SINCE if is_gone else 0)):
            yield number, self.end - STEP * (SAMPLES - 1 - number)

    def _services(self) -> Iterator[str]:
        queries = dict(zip(("ingest-events", "ingest-files", "live-ops"), QUERIES, strict=True))
        for job in JOBS:
            labels = {"job": job, "instance": f"{job}:1"}
            name = "minio_node_process_starttime_seconds" if job == "object-store" else "process_start_time_seconds"
            up = labels | ({"query": queries[job]} if job in queries else {})
            for number in range(SAMPLES):
                time = self.end - STEP * (SAMPLES - 1 - number)
                is_down = job == "live-ops" and number >= SAMPLES - GONE_SINCE
                yield _line("up", up, float(not is_down), time)
                if not is_down:
                    started = time - time % 45 if job == RESTARTING_JOB else self.end - 90_000
                    yield _line(name, labels, started, time)

    def _alerts(self) -> Iterator[str]:
        fires = {"alertname": "StreamStalled", "query": HANGING_QUERY, "severity": "critical"}
        resolved = {"alertname": "TargetDown", "job": "delivery", "severity": "warning"}
        for labels, samples in ((fires, SAMPLES), (resolved, SAMPLES - GONE_SINCE)):
            for number in range(samples):
                time = self.end - STEP * (SAMPLES - 1 - number)
                yield _line("ALERTS", {**labels, "alertstate": "firing"}, 1.0, time)
                yield _line("ALERTS_FOR_STATE", labels, self.end - 900.0, time)


def _is_infinite(name: str, labels: Labels) -> bool:
    return (name, *labels.values()) in {
        ("gamelake_stream_catch_up_seconds", HANGING_QUERY),
        ("gamelake_maintenance_retention_seconds", "tables"),
    }


def _combinations(names: tuple[str, ...], metric: str = "") -> Iterator[Labels]:
    own = next((values for start, values in _OF_METRICS.items() if metric.startswith(start)), {})
    # A game and a table belong to one query; all others to each.
    for values in product(*((_VALUES | own)[name] for name in names)):
        labels = dict(zip(names, values, strict=True))
        if {"game", "table"} & labels.keys() and labels.get("query", QUERIES[0]) != QUERIES[0]:
            continue
        yield labels


def _line(name: str, labels: Labels, value: float, time: int) -> str:
    text = ",".join(f'{label}="{content}"' for label, content in labels.items())
    return f"{name}{{{text}}} {str(value).replace('inf', '+Inf')} {time}"
