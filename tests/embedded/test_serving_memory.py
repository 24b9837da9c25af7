"""Serving takes a backlog of live operations and builds gold within its container's memory."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.embedded.lakehouse import ROOT, Lakehouse
from tests.embedded.live_ops import Play, send_plays
from tests.embedded.sending import Sender
from tests.support.eventually import eventually
from tests.support.process_table import anonymous_mib, descendants_of

# The container's limit (SERVING_MEMORY in compose/.env), less a sixth for what the samples leave out.
_LIMIT_MIB = 1_706
_PLAYERS, _SESSIONS, _EVENTS = 20_000, 40_000, 100_000
_SPARK = ROOT / "compose/spark"
_JARS = ROOT / "build/jars/spark"
_AS_IN_COMPOSE = {
    # Spark is then configured by the stack's own file.
    "GAMELAKE_SPARK_JARS": "",
    "GAMELAKE_TRIGGER_SECONDS": "2",
    "GAMELAKE_MAX_OFFSETS_PER_TRIGGER": "80000",
    "GAMELAKE_CHUNK_RECORDS": "50000",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:MaxDirectMemorySize=160m -XX:ReservedCodeCacheSize=96m",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
}


def spark_configuration(folder: Path) -> Path:
    """A folder with the stack's configuration of serving, and the jars that the image has."""
    folder.mkdir()
    stacks = (_SPARK / "serving/spark-defaults.conf").read_text()
    jars = ",".join(map(str, sorted(_JARS.glob("*.jar"))))
    (folder / "spark-defaults.conf").write_text(f"{stacks}\nspark.jars {jars}\n")
    return folder


def backlog() -> list[Play]:
    return [
        Play(
            gamer=f"g{number % _PLAYERS}",
            name="purchase" if number % 10 == 0 else "level_completed",
            ago=round(10_800 * (1 - number / _EVENTS), 3),
            amount=4.99 if number % 10 == 0 else None,
            level=number % 50,
            session=f"s{number % _SESSIONS}",
        )
        for number in range(_EVENTS)
    ]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux says what processes share")
def test_serving_takes_a_backlog_and_builds_gold_within_the_containers_memory(
    lakehouse: Lakehouse, sender: Sender, topic: Callable[[int], str], tmp_path: Path
) -> None:
    # Its gold tables are those of the stack.
    lakehouse.settings["GAMELAKE_GAMES_FILE"] = str(ROOT / "contracts/games.yaml")
    send_plays(sender, "Archery Duel", backlog(), datetime.now(UTC) - timedelta(seconds=5))
    lakehouse.ingest()
    lakehouse.settings |= _AS_IN_COMPOSE | {
        "SPARK_CONF_DIR": str(spark_configuration(tmp_path / "conf")),
        "SPARK_SUBMIT_OPTS": "",
        "GAMELAKE_LIVE_OPS_PLAYER_TOPIC": topic(2),
        "GAMELAKE_LIVE_OPS_SIGNAL_TOPIC": topic(1),
        "GAMELAKE_LIVE_OPS_TABLE_SECONDS": "0",
    }
    samples = list[float]()
    serving = lakehouse.start(job="serving")

    def is_done() -> bool:
        assert serving.process.poll() is None, serving.log_text()[-3000:]
        samples.append(anonymous_mib({serving.process.pid} | descendants_of(serving.process.pid)))
        states, sessions = (
            lakehouse.rows(f"gold/{name}", "gamer_id") for name in ("live_ops_player_state", "all_sessions")
        )
        return len(states) == _PLAYERS and len(sessions) >= _SESSIONS

    try:
        eventually(is_done, timeout=240)
        assert serving.terminate() == 0, serving.log_text()[-3000:]
    finally:
        with suppress(ProcessLookupError):
            serving.process.kill()
        serving.process.wait()

    assert max(samples) < _LIMIT_MIB, f"{max(samples):.0f} MiB"
