"""Gateway, ingest job, maintenance and game each have a clock of their own, which is minutes off and jumps."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gamelake.delta.listing import appended_tables
from gamelake.ledger.manifests import Manifests
from gamelake.maintenance.run_records import TaskRecord, TaskRecords
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.leases import Lease
from gamelake.observability.health import HealthVerdict, examine_clocks
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt
from gamelake.serving.kpis.refresh import KpiRefresh
from services.sdk import BatchOutcome, Client, Credentials, HttpTransport, Options
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.skewed_clock import SkewedClock
from tests.support.eventually import eventually
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.embedded.process import Program
from tools.embedded.service import REPOSITORY
from tools.simulator.game_sdks import read_credentials

MINUTE = timedelta(minutes=1)
GATEWAY, DRIVER = 3 * MINUTE, -2 * MINUTE
GAME = "archery_duel"
# In a clock's time, from the start of the test: tasks are due once.
DUE = 20 * MINUTE
TASKS = {"compact": "--no-spark", "vacuum": "--yes", "clean_logs": "--yes"}
MAINTENANCE = """
maintenance: {hot_files: 1, retention_days: 0.05, restore_window_days: 0.04, longest_query_hours: 0.5}
"""
PATIENCE = timedelta(seconds=60)

Clocks = Callable[[str, timedelta], SkewedClock]


class SkewedGateway(EmbeddedGateway):
    """A gateway with a clock of its own."""

    def __init__(self, directory: Path, backing: GatewayBackend, clock: SkewedClock) -> None:
        super().__init__(directory, backing)
        self._clock = clock

    def program(self) -> Program:
        """The process, started with its clock."""
        program = super().program()
        return replace(program, command=self._clock.command(program.command))


@pytest.fixture
def clocks(tmp_path: Path) -> Clocks:
    """Makes a clock by its name, and how far it is ahead."""
    return lambda name, ahead: SkewedClock.make(tmp_path / "clocks" / name, ahead)


@pytest.fixture
def gateway(tmp_path: Path, lakehouse: Lakehouse, clocks: Clocks) -> Iterator[EmbeddedGateway]:
    """The gateway, three minutes ahead."""
    backing = GatewayBackend(
        bootstrap_servers=lakehouse.bootstrap_servers, registry_url=lakehouse.registry_url, topic=lakehouse.topic
    )
    opened = SkewedGateway(tmp_path / "gateway", backing, clocks("gateway", GATEWAY))
    opened.make_keys([GAME], 1_000_000)
    with opened:
        yield opened


@pytest.fixture
def credentials(gateway: EmbeddedGateway) -> Credentials:
    """The game's key."""
    return read_credentials(gateway.keys_file)[GAME]


@dataclass
class Game:
    """A game on a device whose clock is minutes off, and jumps; it sends by the SDK."""

    url: str
    credentials: Credentials
    ahead: timedelta = -7 * MINUTE

    def __post_init__(self) -> None:
        """Connect."""
        self.outcomes: list[BatchOutcome] = []
        self.ids: list[str] = []
        self.sent_again = 0
        transport = HttpTransport(self.url, PATIENCE)
        self._client = Client(transport, self.credentials, Options(), self.outcomes.append, self._now)

    def _now(self) -> float:
        return (datetime.now(UTC) + self.ahead).timestamp()

    def play(self, count: int) -> list[str]:
        """Send new events. Return their ids."""
        ids = [str(uuid.uuid4()) for _ in range(count)]
        self._send(ids)
        self.ids += ids
        return ids

    def send_again(self, ids: Sequence[str]) -> None:
        """Send events once more, as after a response that was lost."""
        self._send(ids)
        self.sent_again += len(ids)

    def _send(self, ids: Sequence[str]) -> None:
        for event_id in ids:
            player = f"p{int(event_id[:4], 16) % 7}"
            event = {"event_id": event_id, "event_name": "tap", "event_time": datetime.now(UTC), "gamer_id": player}
            self._client.send(event)
        assert self._client.flush(PATIENCE)

    def close(self) -> None:
        assert self._client.close()


@pytest.fixture
def game(gateway: EmbeddedGateway, credentials: Credentials) -> Iterator[Game]:
    opened = Game(gateway.url, credentials)
    yield opened
    opened.close()


@pytest.fixture
def maintained(lakehouse: Lakehouse) -> Lakehouse:
    """The lakehouse, whose contract keeps old versions for little more than an hour."""
    contract = (REPOSITORY / "contracts/games.yaml").read_text()
    before, after = contract.split("\nmaintenance:\n")
    lakehouse.games_file.write_text(before + MAINTENANCE + after[after.index("\n\n") :])
    return lakehouse


def records_of(lakehouse: Lakehouse) -> Mapping[str, TaskRecord]:
    records, now = TaskRecords(lakehouse.store), datetime.now(UTC)
    return {name: records.of(name, now) for name in TASKS}


def a_schedule(folder: Path, due: datetime) -> Path:
    """Each task daily at a time."""
    tasks = [
        {"name": name, "when": f"daily at {due:%H:%M}", "job": name, "arguments": [argument]}
        for name, argument in TASKS.items()
    ]
    file = folder / "schedule.yaml"
    file.write_text(json.dumps({"tasks": tasks}))  # JSON is YAML
    return file


@pytest.mark.slow
def test_events_tables_and_maintenance_are_right_though_each_process_has_another_time(
    maintained: Lakehouse, gateway: EmbeddedGateway, game: Game, clocks: Clocks
) -> None:
    lakehouse, driver, scheduler = maintained, clocks("driver", DRIVER), clocks("maintenance", 4 * MINUTE)
    begun = datetime.now(UTC)
    lakehouse.settings |= {
        "GAMELAKE_SCHEDULE_FILE": str(a_schedule(lakehouse.directory, begun + DUE)),
        "GAMELAKE_MAINTENANCE_MEASURE_SECONDS": "0",
        "GAMELAKE_TRIGGER_SECONDS": "0.2",
    }
    ingesting = lakehouse.start(clock=driver)
    lakehouse.settings["GAMELAKE_BOOTSTRAP_SERVERS"] = ""
    maintaining = lakehouse.start(job="maintenance", clock=scheduler)
    try:
        for count in (30, 10):
            lakehouse.await_rows(SILVER_EVENTS, game.play(count))
        with ThreadPoolExecutor(1) as pool:
            maintained_well = pool.submit(maintain_while_clocks_jump, lakehouse, scheduler)
            ingest_while_clocks_jump(lakehouse, game, driver)
            maintained_well.result()
        eventually(lambda: lakehouse.reconciliation().duplicates.total() == game.sent_again, timeout=60)
        found = examine_clocks(lakehouse.store)
        assert [ingesting.terminate(), maintaining.terminate()] == [0, 0]
    finally:
        for job in (ingesting, maintaining):
            job.process.kill()
            job.process.wait()

    assert lakehouse.event_ids() == dict.fromkeys(game.ids, 1)
    assert lakehouse.reconciliation().problems == []
    assert {each.runs_ok for each in records_of(lakehouse).values()} == {1}
    assert "Traceback" not in maintaining.log_text()
    arrived = lakehouse.rows(SILVER_EVENTS, "ingest_time")["ingest_time"].to_pylist()
    # Kafka's timestamps are right, and limit what a gateway may claim; the driver's clock changes none.
    assert begun <= min(arrived)
    assert max(arrived) <= datetime.now(UTC)
    assert all(versions_can_be_read(lakehouse, table) for table in appended_tables(lakehouse.store))
    assert [(each.verdict, "behind the store" in each.found) for each in found] == [(HealthVerdict.WARN, True)]
    assert figures_of_gold(lakehouse) == figures_of_kpis(lakehouse) == len(game.ids)


def ingest_while_clocks_jump(lakehouse: Lakehouse, game: Game, driver: SkewedClock) -> None:
    """Events are sent again after each jump of the driver's clock, by ten minutes back and forth."""
    for ahead in (DRIVER - 10 * MINUTE, DRIVER):
        driver.set(ahead)
        game.ahead = ahead
        eventually(lambda: is_seen(lakehouse, driver, game), timeout=60)
        game.send_again(game.ids)


def is_seen(lakehouse: Lakehouse, driver: SkewedClock, game: Game) -> bool:
    """Return True if the newest batch was decided by the driver's clock as it is now."""
    ids = game.play(5)
    lakehouse.await_rows(SILVER_EVENTS, ids)
    (newest,) = Manifests(lakehouse.store, "ingest_events").last(1)
    return abs(datetime.fromisoformat(newest.written_at) - driver.now()) < MINUTE


def maintain_while_clocks_jump(lakehouse: Lakehouse, clock: SkewedClock) -> None:
    """A jump makes all tasks due; a holder of their lease keeps it; and each task runs once, though the time recurs."""
    with Lease(lakehouse.store, "_gamelake/maintenance/lease", "maintenance in another process"):
        clock.set(40 * MINUTE)
        eventually(lambda: "task_waits" in lakehouse.log.read_text(), timeout=60)
    eventually(lambda: all(each.runs_ok for each in records_of(lakehouse).values()), timeout=60)
    compacted = records_of(lakehouse)["compact"]
    assert compacted.done.compacted_files > 1

    # Their time comes again.
    clock.set(DUE - MINUTE)
    clock.set(DUE + 2 * MINUTE)


def versions_can_be_read(lakehouse: Lakehouse, table: str) -> bool:
    """Return True if each version of a table can still be read: all are within the retention."""
    path = lakehouse.directory / "lake" / table
    newest = DeltaTable(path).version()
    rows = [DeltaTable(path, version=version).to_pyarrow_table().num_rows for version in range(newest + 1)]
    return rows == sorted(rows) and rows[-1] > 0


def figures_of_gold(lakehouse: Lakehouse) -> int:
    results = [attempt(each) for each in GoldTables(lakehouse.store, load_gold(lakehouse.games_file)).now()]
    assert all(isinstance(each, Refreshed) for each in results), results
    return sum(lakehouse.rows(f"gold/{GAME}_player_agg", "event_count")["event_count"].to_pylist())


def figures_of_kpis(lakehouse: Lakehouse) -> int:
    """The events that the KPIs count; none is late."""
    assert KpiRefresh(lakehouse.store)().failed == ()
    assert sum(lakehouse.rows("gold/kpi_late", "late")["late"].to_pylist()) == 0
    return sum(lakehouse.rows("gold/kpi_daily", "events")["events"].to_pylist())


def test_a_sender_whose_clock_is_wrong_is_refused_with_the_difference_and_the_remedy(
    gateway: EmbeddedGateway, credentials: Credentials
) -> None:
    body, transport = b'{"events": []}', HttpTransport(gateway.url, PATIENCE)

    def reply_to(ahead: timedelta) -> tuple[int, bytes]:
        signed = credentials.headers(body, (datetime.now(UTC) + ahead).timestamp())
        reply = transport.post(body, {"content-type": "application/json", **signed})
        return reply.status, reply.body

    status, text = reply_to(GATEWAY - 6 * MINUTE)
    assert (status, b"behind the gateway's clock" in text, b"set the sender's clock" in text) == (401, True, True)
    status, text = reply_to(GATEWAY + 6 * MINUTE)
    assert (status, b"ahead of the gateway's clock" in text) == (401, True)
    assert reply_to(GATEWAY - 4 * MINUTE)[0] == reply_to(GATEWAY + 4 * MINUTE)[0] == 200
