"""The progress of a run: the job's log, the memory, the display."""

import io
import logging
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from gamelake.model.logs import JsonFormatter, event_logger
from tools.demo.options import parse
from tools.demo.progress import JobLog, batch_of, resident_bytes
from tools.demo.screen import RunStatus, Screen

PREFIX = '{"time": "2026-11-21T10:41:01.858Z", "level": "info", "logger": "gamelake.streaming.driver.batch", '
BATCH = (
    '"event": "batch_committed", "batch":3,"records":199998,'
    '"dead_letters":{"bad_framing":109,"unroutable":191},"tables":33,"files":279,'
    '"bytes":28872721,"decide_seconds":7.629,"commit_seconds":0.107,"committed_at":"2026-11-21T10:41:01.858264+00:00"}'
)
A_STATUS = RunStatus(
    seconds=12.3,
    goal=1_000_000,
    produced=500_000,
    taken=200_000,
    records_per_second=25_000,
    tables=33,
    dead_letters=12,
    batches=1,
)


def test_a_batch_is_read_from_its_line() -> None:
    batch = batch_of((PREFIX + BATCH).encode())

    assert batch is not None
    assert (batch.batch, batch.records, batch.tables, batch.files) == (3, 199_998, 33, 279)
    assert batch.dead_letters == {"bad_framing": 109, "unroutable": 191}
    assert batch.seconds == pytest.approx(7.736)
    assert batch.committed_at.isoformat() == "2026-11-21T10:41:01.858264+00:00"


def test_a_batch_is_read_from_the_line_that_the_job_writes(caplog: pytest.LogCaptureFixture) -> None:
    fields = msgspec.json.decode("{" + BATCH.split(", ", 1)[1])
    with caplog.at_level(logging.INFO):
        event_logger("gamelake.streaming.driver.batch").info("batch_committed", **fields)

    assert batch_of(JsonFormatter().format(caplog.records[-1]).encode()) == batch_of((PREFIX + BATCH).encode())


@pytest.mark.parametrize(
    "line",
    [
        "26/11/21 10:41:01 WARN ProcessingTimeExecutor: Current batch is falling behind.",
        PREFIX + '"event": "batch_already_decided", "batch": 3, "action": "finishes its commits"}',
        "",
    ],
)
def test_a_line_of_something_else_is_no_batch(line: str) -> None:
    assert batch_of(line.encode()) is None


def test_a_batch_that_lacks_a_figure_is_an_error_and_not_overlooked() -> None:
    with pytest.raises(msgspec.ValidationError):
        batch_of((PREFIX + '"event": "batch_committed", "batch":3}').encode())


def test_the_log_is_followed_from_its_end_and_by_complete_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"{PREFIX}{BATCH}\n")
    log = JobLog(path, set())

    with path.open("a") as writer:
        writer.write(PREFIX + BATCH.replace('"batch":3', '"batch":4') + "\n" + PREFIX + BATCH[:50])
        writer.flush()
        first = log.new_batches()
        writer.write(BATCH[50:] + "\n")
        writer.flush()
        second = log.new_batches()

    assert [batch.batch for batch in first] == [4]
    assert [batch.batch for batch in second] == [3]
    assert log.new_batches() == []


def test_a_batch_that_was_decided_before_is_not_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = JobLog(path, {2, 3})

    new = BATCH.replace('"batch":3', '"batch":4')
    path.write_text(f"{PREFIX}{BATCH}\n{PREFIX}{new}\n")

    assert [batch.batch for batch in log.new_batches()] == [4]


def test_memory_is_that_of_a_process_and_its_descendants() -> None:
    listing = "  1  0 1000\n 10  1  200\n 11 10   30\n 12 11    4\n 20  1 5000\n"

    assert resident_bytes(listing, 10) == 234 * 1024


def test_without_a_terminal_the_status_is_a_plain_line() -> None:
    written = io.StringIO()

    with Screen(Console(file=written, soft_wrap=True)) as screen:
        screen.show(A_STATUS)

    assert written.getvalue() == (
        "   12 s  produced 500,000  committed 200,000  25,000/s  lag 300,000  tables 33  dead letters 12\n"
    )


def test_on_a_terminal_the_status_is_a_block() -> None:
    written = io.StringIO()

    with Screen(Console(file=written, force_terminal=True, width=100)) as screen:
        screen.show(A_STATUS)
        screen.show(A_STATUS)

    for figure in ("500,000", "200,000", "300,000", "25,000", "33", "12"):
        assert figure in written.getvalue()


@pytest.mark.parametrize("option", ["--events", "--games", "--versions", "--rate", "--max-records-per-batch"])
def test_options_must_be_at_least_one(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([option, "0"])

    assert "'0' is not a whole number of at least 1" in capsys.readouterr().err
