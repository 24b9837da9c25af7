"""The lineage of a job becomes events in a table and a file, and no failure there reaches the job."""

import json
import logging
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from obstore.exceptions import BaseError

from gamelake.model.errors import ContractError, GamelakeError
from gamelake.model.naming import LINEAGE_EVENTS
from gamelake.model.options import LineageOptions
from gamelake.objects.store import Location, Store
from gamelake.observability.lineage import emitter as emitter_module
from gamelake.observability.lineage.datasets import Datasets
from gamelake.observability.lineage.delta_transport import EventRow, EventTable
from gamelake.observability.lineage.emitter import LineageEmitter, NoOpEmitter, lineage_emitter
from gamelake.observability.lineage.flow import FilesDataset, Flow, FlowEnd, RunKind, TableDataset, TopicDataset, tables
from tests.support.eventually import eventually
from tests.support.logged import logged
from tests.unit.observability.lineage.tables import emit, events, lake, make_table, types


def flow(job: str = "kpis.dau", *outputs: str, inputs: tuple[str, ...] = ("silver/events",)) -> Flow:
    return Flow(
        job=job,
        description="Counts.",
        kind=RunKind.STREAMING,
        inputs=tables(*inputs),
        outputs=tables(*(outputs or ("gold/kpi_dau",))),
    )


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return lake(tmp_path)


def test_a_run_begins_and_ends_with_all_that_is_known_of_its_tables(tmp_path: Path, location: Location) -> None:
    make_table(location, "silver/events", "event_id", "gamer_id")
    make_table(location, "gold/kpi_dau", "day")

    emit(location, flow())

    begun, ended = events(location)
    assert (begun["eventType"], ended["eventType"]) == ("START", "COMPLETE")
    assert begun["run"]["runId"] == ended["run"]["runId"]
    assert ended["run"]["facets"]["parent"]["job"]["name"] == "kpis"
    assert ended["job"]["facets"]["documentation"]["description"] == "Counts."
    (read,), (written,) = ended["inputs"], ended["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "lake/silver/events"))
    assert [each["name"] for each in read["facets"]["schema"]["fields"]] == ["event_id", "gamer_id"]
    assert written["facets"]["version"]["datasetVersion"] == "0"


def test_the_table_of_events_can_be_asked_by_job_and_table(location: Location) -> None:
    topic = FlowEnd(what=TopicDataset("kafka-1:9092,kafka-2:9092", "events"), schema_ids=frozenset({7}))

    emit(location, Flow(job="a", description="", kind=RunKind.BATCH, inputs=(topic,), outputs=tables("silver/events")))

    rows = (
        DeltaTable(location.child(LINEAGE_EVENTS)).to_pyarrow_table().select(["job", "inputs", "outputs"]).to_pylist()
    )
    assert rows == [{"job": "a", "inputs": ["topic/events"], "outputs": ["silver/events"]}] * 2
    (event, _) = events(location)
    assert event["inputs"][0]["namespace"] == "kafka://kafka-1:9092"
    assert event["inputs"][0]["facets"]["gamelake_protobuf"]["schemas"] == [{"id": 7}]


def test_the_same_flow_again_is_no_event(location: Location) -> None:
    make_table(location, "silver/events")
    make_table(location, "gold/kpi_dau")

    with lineage_emitter(LineageOptions(), "kpis", location) as job_lineage:
        job_lineage.emit(flow())
        eventually(lambda: DeltaTable.is_deltatable(location.child(LINEAGE_EVENTS)), timeout=20)
        job_lineage.emit(flow())
        job_lineage.emit(flow("kpis.dau", "gold/kpi_dau", "gold/kpi_wau"))

    assert types(location) == [("kpis.dau", "START"), ("kpis.dau", "RUNNING"), ("kpis.dau", "COMPLETE")]


def test_a_run_that_goes_on_emits_an_event_at_an_interval(location: Location) -> None:
    with lineage_emitter(LineageOptions(every=timedelta(milliseconds=50)), "kpis", location) as job_lineage:
        job_lineage.emit(flow())
        eventually(lambda: ("kpis.dau", "RUNNING") in _types_so_far(location), timeout=20)


def _types_so_far(location: Location) -> list[tuple[str, str]]:
    try:
        return types(location)
    except TableNotFoundError:
        return []


def test_a_table_that_appears_is_emitted(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitter_module, "_RETRY_SECONDS", 0.02)

    with lineage_emitter(LineageOptions(), "kpis", location) as job_lineage:
        job_lineage.emit(flow())
        eventually(lambda: len(_types_so_far(location)) == 1, timeout=20)
        make_table(location, "gold/kpi_dau", "day")
        eventually(lambda: len(_types_so_far(location)) == 2, timeout=20)

    begun, seen, _ = events(location)
    assert "version" not in begun["outputs"][0]["facets"]
    assert seen["outputs"][0]["facets"]["version"]["datasetVersion"] == "0"


@pytest.mark.parametrize(
    ("error", "text"),
    [(ContractError("no such game"), "ContractError: no such game"), (ValueError("about a player"), "ValueError")],
)
def test_a_run_that_fails_says_so_in_words_that_are_ours(location: Location, error: Exception, text: str) -> None:
    def fail() -> None:
        with lineage_emitter(LineageOptions(), "kpis", location) as job_lineage:
            job_lineage.emit(flow())
            raise error

    with pytest.raises(type(error)):
        fail()

    last = events(location)[-1]
    assert last["eventType"] == "FAIL"
    assert last["run"]["facets"]["errorMessage"]["message"] == text


def test_the_file_has_the_same_events(tmp_path: Path, location: Location) -> None:
    file = tmp_path / "logs" / "lineage.jsonl"

    emit(location, flow("kpis.dau"), flow("kpis.wau"), options=LineageOptions(file=file))

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    key = lambda event: (event["eventTime"], event["job"]["name"])  # noqa: E731
    assert sorted(lines, key=key) == sorted(events(location), key=key)
    assert len(lines) == 4


def test_a_job_without_a_lineage_setting_emits_none(tmp_path: Path, location: Location) -> None:
    with lineage_emitter(LineageOptions(every=timedelta()), "kpis", location) as job_lineage:
        job_lineage.emit(flow())

    assert isinstance(job_lineage, NoOpEmitter)
    assert not (tmp_path / "lake").exists()


def test_a_file_that_can_not_be_written_keeps_no_event_from_the_table(tmp_path: Path, location: Location) -> None:
    (tmp_path / "folder").mkdir()

    emit(location, flow(), options=LineageOptions(file=tmp_path / "folder"))

    assert types(location) == [("kpis.dau", "START"), ("kpis.dau", "COMPLETE")]


class _Broken:
    """A sender whose store is away until `is_back`."""

    def __init__(self) -> None:
        self.is_back = False
        self.sent: list[str] = []

    def started(self, flows: Sequence[Flow]) -> None:
        self._send("started", flows)

    def running(self, flows: Sequence[Flow]) -> None:
        self._send("running", flows)

    def ended(self, flows: Sequence[Flow], error: str) -> None:
        self._send("ended", flows)

    def lacks(self, flow: Flow) -> frozenset[str]:
        return frozenset()

    def _send(self, what: str, flows: Sequence[Flow]) -> None:
        if not self.is_back:
            raise GamelakeError("the store is away")
        self.sent.extend(f"{what} {each.job}" for each in flows)


def test_a_store_that_is_away_is_tried_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(emitter_module, "_TRY_AGAIN_SECONDS", 0.02)
    sender = _Broken()
    job_lineage = _emitting(lambda: sender)

    job_lineage.emit(flow())
    eventually(lambda: bool(logged(caplog, "lineage_not_sent")), timeout=20)
    sender.is_back = True
    eventually(lambda: bool(sender.sent), timeout=20)
    job_lineage.end("")

    assert sender.sent[0].endswith("kpis.dau")
    assert sender.sent[-1] == "ended kpis.dau"


def test_what_an_outage_keeps_back_is_the_newest_of_each_run_and_is_sent_in_the_end(
    tmp_path: Path, location: Location
) -> None:
    table = EventTable(Store(location), "w")
    blocked = tmp_path / "lake" / "lineage"
    blocked.parent.mkdir(exist_ok=True)
    blocked.write_text("in the way")
    for number in range(100):
        table.add(_row(f"event {number}", number % 2))
        if number % 10 == 0:
            with pytest.raises(BaseError):
                table.flush()
    blocked.unlink()

    table.flush()
    table.flush()

    rows = DeltaTable(location.child(LINEAGE_EVENTS)).to_pyarrow_table()
    assert sorted(rows["event"].to_pylist()) == ["event 98", "event 99"]


def _row(event: str, run: int) -> EventRow:
    return EventRow(
        event_time=datetime.now(UTC),
        event_type="RUNNING",
        job="kpis.dau",
        run_id=str(run),
        inputs=(),
        outputs=("gold/kpi_dau",),
        event=event,
    )


def test_a_sender_that_hangs_holds_up_no_job(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(emitter_module, "_PATIENCE_SECONDS", 0.1)
    release = threading.Event()

    def hang() -> _Broken:
        release.wait(20)
        return _Broken()

    job_lineage = _emitting(hang)
    with caplog.at_level(logging.WARNING):
        job_lineage.emit(flow())
        job_lineage.end("")
    release.set()

    assert [each["seconds"] for each in logged(caplog, "last_lineage_not_sent")] == [0.1]


def _emitting(open_sender: Callable[[], _Broken]) -> LineageEmitter:
    job_lineage = LineageEmitter(open_sender, 3_600)
    job_lineage.start()
    return job_lineage


def test_a_bucket_or_folder_of_files_has_a_name_too() -> None:
    datasets = Datasets(Location(uri="s3://lakehouse/live"))

    assert datasets.name(FilesDataset("s3://landing")) == ("s3://landing", "/")
    assert datasets.name(FilesDataset("file:///srv/landing"))[1] == "/srv/landing"
    assert "schema" not in (datasets.read(FlowEnd(what=FilesDataset("s3://landing"))).facets or {})


def test_a_place_in_a_bucket_is_named_as_openlineage_names_it() -> None:
    name = Datasets(Location(uri="s3://lakehouse/live")).name(TableDataset("silver/events"))

    assert name == ("s3://lakehouse", "live/silver/events")
