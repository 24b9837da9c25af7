"""Log lines: text for people, JSON for machines, nothing on stdout."""

import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from gamelake.model.errors import SettingsError
from gamelake.model.logs import JsonFormatter, LogEvent, TextFormatter, event_logger, set_up_logs
from tests.support.logged import logged

ROOT = Path(__file__).parents[3]
log = event_logger("tests.logs")


@pytest.fixture
def line(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO):
        yield caplog


def as_json(line: pytest.LogCaptureFixture) -> dict[str, object]:
    (text,) = JsonFormatter().format(line.records[-1]).splitlines()
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def as_text(line: pytest.LogCaptureFixture) -> str:
    return TextFormatter().format(line.records[-1])


def test_an_event_is_a_line_of_json_with_its_time_in_utc(line: pytest.LogCaptureFixture) -> None:
    log.warning("lease_not_renewed", lease="silver/events", error=OSError("no answer"), seconds=2.5)

    found = as_json(line)
    assert datetime.fromisoformat(str(found.pop("time"))).utcoffset() == timedelta(0)
    assert found == {
        "level": "warning",
        "logger": "tests.logs",
        "event": "lease_not_renewed",
        "lease": "silver/events",
        "error": "no answer",
        "seconds": 2.5,
    }


def test_an_event_is_a_line_of_text_with_quotes_where_a_value_needs_them(line: pytest.LogCaptureFixture) -> None:
    log.info("batch_committed", batch=3, table="silver/events", day=date(2026, 1, 2), counts={"a": 1}, note="it 'is'")

    time, rest = as_text(line).split(" ", 1)
    assert time.endswith("Z")
    assert datetime.fromisoformat(time)
    assert rest == (
        "INFO tests.logs batch_committed batch=3 table=silver/events day=2026-01-02 "
        """counts={"a": 1} note="it 'is'\""""
    )


@pytest.mark.parametrize(
    "text", ['a "quoted" word', "two\nlines", "", "a=b", "größer als", "a\u2028b", "\udc80", "\x1b[31m"]
)
def test_any_value_stays_on_one_line_and_can_be_read_back(line: pytest.LogCaptureFixture, text: str) -> None:
    log.info("batch_committed", value=text)

    assert as_json(line)["value"] == text
    assert len(as_text(line).splitlines()) == 1
    assert json.loads(as_text(line).partition("value=")[2]) == text


def test_a_traceback_is_a_field_of_the_same_line_of_json(line: pytest.LogCaptureFixture) -> None:
    try:
        Path("/no/such/place").read_text(encoding="utf-8")
    except OSError:
        log.exception("poll_failed", poll="a poll")

    found = as_json(line)
    assert (found["level"], found["poll"]) == ("error", "a poll")
    assert str(found["exception"]).startswith("Traceback (most recent call last):\n")
    assert str(found["exception"]).endswith("No such file or directory: '/no/such/place'")
    assert as_text(line).splitlines()[1] == "Traceback (most recent call last):"


def test_a_librarys_line_has_the_same_form(line: pytest.LogCaptureFixture) -> None:
    logging.getLogger("library").warning("%d of %s", 3, "them")
    found = as_json(line)
    assert (found["logger"], found["event"], found["message"]) == ("library", "library_message", "3 of them")
    assert as_text(line).endswith(" WARNING library 3 of them")

    logging.getLogger("sdk").warning("refused", extra={"event": "batch_refused"})
    assert (as_json(line)["event"], as_json(line)["message"]) == ("batch_refused", "refused")


def test_a_test_reads_the_fields_of_an_event(line: pytest.LogCaptureFixture) -> None:
    log.info("batch_committed", batch=3)
    log.info("batch_decided_again", batch=4)

    assert logged(line, "batch_committed") == [{"batch": 3}]
    assert str(LogEvent("batch_committed", {"batch": 3})) == "batch_committed batch=3"


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(SettingsError, match="GAMELAKE_LOG_FORMAT is 'xml'; it must be text or json"):
        set_up_logs({"GAMELAKE_LOG_FORMAT": "xml"})


def ended(program: str, log_format: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    command = [sys.executable, "-c", program]
    environment = {"GAMELAKE_LOG_FORMAT": log_format}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT, env=environment)


def test_a_process_without_a_set_up_prints_warnings_to_stderr_and_nothing_to_stdout() -> None:
    """As Python workers of Spark are, whose stdout is not theirs."""
    program = "from gamelake.model.logs import event_logger as l; l('a').info('b'); l('a').warning('c', d='e f')"
    done = ended(program)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", 'c d="e f"\n')


RUN = """
from gamelake.model.errors import SettingsError
from gamelake.program import run

def main():
    raise {error}("no such place")

run(main)
"""


@pytest.mark.parametrize(("error", "code"), [("SettingsError", 2), ("ValueError", 1)])
def test_a_program_reports_its_end_in_one_line_of_json(error: str, code: int) -> None:
    done = ended(RUN.format(error=error), "json")
    (line,) = done.stderr.splitlines()
    found = json.loads(line)

    assert (done.returncode, done.stdout) == (code, "")
    assert (found["event"], found["error_type"], found["exit_code"]) == ("program_failed", error, code)
    assert found["error"] == "no such place"
    assert ("exception" in found) == (error == "ValueError")


def test_a_program_reports_its_end_in_text_where_nothing_is_set() -> None:
    done = ended(RUN.format(error="SettingsError"))

    assert done.stderr.endswith(
        ' ERROR gamelake.program program_failed exit_code=2 error_type=SettingsError error="no such place"\n'
    )


def test_a_command_reports_the_same_error_as_a_sentence_and_in_json_as_a_record() -> None:
    command = RUN.replace("run(main)", "run(main, is_command=True)").format(error="SettingsError")
    said, logged = ended(command), ended(command, "json")

    assert (said.returncode, said.stdout, said.stderr) == (2, "", "gamelake: no such place\n")
    assert (logged.returncode, json.loads(logged.stderr)["event"]) == (2, "program_failed")


def test_a_program_at_a_terminal_reports_its_error_as_a_sentence() -> None:
    ours, terminal = pty.openpty()
    program = (sys.executable, "-c", RUN.format(error="SettingsError"))
    with os.fdopen(ours, "rb") as screen:
        ran = subprocess.run(program, cwd=ROOT, stderr=terminal, check=False)
        os.close(terminal)

        assert (ran.returncode, os.read(screen.fileno(), 1000)) == (2, b"gamelake: no such place\r\n")


def test_a_program_with_an_unknown_format_ends_as_with_any_wrong_setting() -> None:
    done = ended(RUN.format(error="ValueError"), "xml")

    assert done.returncode == 2
    assert "GAMELAKE_LOG_FORMAT is 'xml'; it must be text or json" in done.stderr
