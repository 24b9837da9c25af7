"""A record that kills each process that reads it becomes a dead letter, and all other records of its batch rows."""

import json
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest

from gamelake.ledger.manifests import Manifests
from tests.embedded.lakehouse import ROOT, Lakehouse
from tests.embedded.live_ops import Play, newest_values, send_plays
from tests.embedded.sending import Sender, an_event, contract_text, framed

# The address space that each Python worker may have.
WORKER_MEMORY = "2500m"
_ITEM = "message Item {\n" + "".join(f"  double f{number} = {number};\n" for number in range(1, 1001)) + "}\n"
_LAST = "  EventParams event_params = 8;\n"
WIDE = contract_text(1).replace(_LAST, f"{_LAST}  repeated Item items = 60;\n") + _ITEM


@pytest.fixture
def limited(lakehouse: Lakehouse, tmp_path: Path) -> Lakehouse:
    """A lakehouse whose Python workers have less memory than a record may take."""
    folder = tmp_path / "spark"
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(f"spark.executor.pyspark.memory {WORKER_MEMORY}\n")
    lakehouse.settings |= {"SPARK_CONF_DIR": str(folder), "GAMELAKE_MAX_OFFSETS_PER_TRIGGER": "2000000"}
    lakehouse.settings["GAMELAKE_RECORD_MAX_MIB"] = "16384"
    return lakehouse


def send_poison(sender: Sender) -> bytes:
    """Send a record of 900 KB that takes several GB once it is decoded. Return its value."""
    event = framed(sender.register(WIDE), an_event(WIDE, "poison", "Archery"))
    # Empty items, each of a thousand columns.
    poison = event + b"\xe2\x03\x00" * 300_000
    sender.send_bad([poison])
    return poison


# The few are read within seconds too, but next to other tests.
@pytest.mark.parametrize(("records", "seconds"), [(20_000, 300), pytest.param(1_000_000, 120, marks=pytest.mark.slow)])
def test_a_record_that_takes_all_memory_of_a_worker_is_a_dead_letter_within_two_minutes(
    limited: Lakehouse, sender: Sender, records: int, seconds: int
) -> None:
    source = contract_text(1)
    marker = str(uuid.UUID(int=0))
    value = framed(sender.register(source), an_event(source, marker, "Bingo"))
    ids = [str(uuid.UUID(int=number + 1)) for number in range(records)]
    values = [value.replace(marker.encode(), each.encode()) for each in ids]
    sender.send_values(ids[: records // 3], values[: records // 3])
    poison = send_poison(sender)
    sender.send_values(ids[records // 3 :], values[records // 3 :])

    began = time.monotonic()
    limited.ingest_in_a_process()
    taken = time.monotonic() - began

    assert limited.event_ids("silver/bingo_events") == Counter(ids)
    letters = limited.rows("dead_letters/events", "value", "reason", "detail").to_pylist()
    assert [(each["value"], each["reason"]) for each in letters] == [(poison, "poisonous")]
    assert limited.reconciliation().problems == []
    assert taken < seconds


@pytest.mark.slow
@pytest.mark.parametrize("poison", ["takes all memory of a worker", "makes a state larger than a message"])
def test_live_operations_pass_over_records_that_no_state_can_have(
    limited: Lakehouse, sender: Sender, topic: Callable[[int], str], poison: str
) -> None:
    published = topic(2)
    limited.settings |= {"GAMELAKE_LIVE_OPS_PLAYER_TOPIC": published, "GAMELAKE_LIVE_OPS_SIGNAL_TOPIC": topic(1)}
    now = datetime.now(UTC) - timedelta(seconds=5)
    send_plays(sender, "Bingo", [Play(gamer=f"b{number}") for number in range(20)], now)
    if poison == "takes all memory of a worker":
        send_poison(sender)
    else:
        plays = [Play(gamer="x" * 490_000), Play(gamer="a1"), Play(gamer="a1", platform="x" * 980_000)]
        send_plays(sender, "Archery", plays, now)
    send_plays(sender, "Bingo", [Play(gamer=f"b{number}") for number in range(20, 40)], now)

    limited.ingest_in_a_process("live_ops")

    states = newest_values(limited.bootstrap_servers, published)
    others = {"archery/a1"} if "larger" in poison else set()
    assert states.keys() == {f"bingo/b{number}" for number in range(40)} | others
    manifests = Manifests(limited.store, "live_ops").last(10)
    assert sum(each.records for each in manifests) == (43 if others else 41)
    assert [each.dead_letters for each in manifests if each.dead_letters] == ([] if others else [{"poisonous": 1}])


def skip(lakehouse: Lakehouse, *arguments: str) -> tuple[int, str]:
    """The exit code of the job that skips records of partition 0 and what it printed."""
    command = [sys.executable, "-m", "jobs.skip_records", "--topic", lakehouse.topic, "--partition", "0", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=lakehouse.environment(), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout or done.stderr


@pytest.mark.slow
def test_an_operator_has_named_records_skipped(lakehouse: Lakehouse, sender: Sender) -> None:
    assert skip(lakehouse, "--offsets", "1", "--yes")[0] == 2
    sender.send_events(40, "Archery")
    lakehouse.ingest_in_a_process()
    done = lakehouse.rows("bronze/events", "partition").filter(pc.field("partition") == 0).num_rows
    sender.send_events(200, "Bingo")

    code, said = skip(lakehouse, "--offsets", f"{done + 2}-{done + 3},{done + 5}", "--dry-run")
    assert (code, [each["first"] for each in json.loads(said)]) == (0, [done + 2, done + 5])
    assert skip(lakehouse, "--offsets", f"{done + 2}-{done + 3},{done + 5}", "--yes")[0] == 0
    code, said = skip(lakehouse, "--offsets", "0", "--yes")
    assert (code, f"up to offset {done - 1}" in said) == (2, True)
    lakehouse.ingest_in_a_process()

    letters = lakehouse.rows("dead_letters/events", "partition", "offset", "reason", "detail").to_pylist()
    assert sorted((each["partition"], each["offset"], each["reason"], each["detail"]) for each in letters) == [
        (0, offset, "poisonous", "skipped by an operator") for offset in (done + 2, done + 3, done + 5)
    ]
    assert sum(lakehouse.event_ids("silver/bingo_events").values()) == 197
    assert lakehouse.reconciliation().problems == []
    lakehouse.ingest_in_a_process()
    assert lakehouse.store.paths("_gamelake/streams/ingest_events/skipped") == []
