"""What the alert receiver makes of a notification, and how it keeps it."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gamelake.model.errors import SettingsError
from services.alert_receiver.notification import MalformedNotificationError, alert_lines
from services.alert_receiver.server import AlertLog
from services.alert_receiver.settings import ReceiverSettings
from tests.support.failing import failing

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)


def an_alert(**different: object) -> dict[str, object]:
    """As Alertmanager 0.28 sends it."""
    return {
        "status": "firing",
        "labels": {"alertname": "StreamQueryDown", "query": "ingest_events", "severity": "critical"},
        "annotations": {"summary": "Query ingest_events does not run"},
        "startsAt": "2026-09-01T11:59:30.123Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus:9090/graph",
        "fingerprint": "c4d6d7e3a1b2c3d4",
        **different,
    }


def a_notification(alerts: Iterable[object]) -> bytes:
    """The body of a webhook's call."""
    return json.dumps({"version": "4", "status": "firing", "receiver": "r", "alerts": list(alerts)}).encode()


def test_each_alert_of_a_notification_becomes_a_line() -> None:
    resolved = an_alert(status="resolved", endsAt="2026-09-01T12:00:00Z")

    first, second = alert_lines(a_notification([an_alert(), resolved]), NOON)

    assert json.loads(first.to_json()) == {
        "received_at": "2026-09-01T12:00:00.000+00:00",
        "status": "firing",
        "alertname": "StreamQueryDown",
        "labels": {"alertname": "StreamQueryDown", "query": "ingest_events", "severity": "critical"},
        "annotations": {"summary": "Query ingest_events does not run"},
        "starts_at": "2026-09-01T11:59:30.123Z",
        "ends_at": "0001-01-01T00:00:00Z",
    }
    assert second.status == "resolved"


def test_a_line_break_in_an_annotation_does_not_make_two_lines() -> None:
    (line,) = alert_lines(a_notification([an_alert(annotations={"summary": "one\ntwo\u2028three"})]), NOON)

    assert "\n" not in line.to_json()
    assert json.loads(line.to_json())["annotations"] == {"summary": "one\ntwo\u2028three"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b'{"version": "4"}',
        b'{"alerts": {}}',
        a_notification(["no alert"]),
        a_notification([{"status": "firing"}]),
        a_notification([an_alert(labels=["alertname"])]),
        a_notification([an_alert(labels={"alertname": 1})]),
        a_notification([an_alert(), an_alert(status=None)]),
    ],
    ids=lambda body: body[:40].decode(errors="replace"),
)
def test_an_invalid_notification_is_rejected_completely(body: bytes) -> None:
    with pytest.raises(MalformedNotificationError):
        alert_lines(body, NOON)


def test_lines_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "new" / "alerts.jsonl"

    AlertLog(file).append(["one", "two"])
    AlertLog(file).append(["three"])
    AlertLog(file).append([])

    assert file.read_text() == "one\ntwo\nthree\n"


def test_a_file_that_has_grown_large_is_kept_once_and_a_new_one_begun(tmp_path: Path) -> None:
    file = tmp_path / "alerts.jsonl"
    alert_log = AlertLog(file, most_bytes=10)

    for line in ("one", "two", "three", "four"):
        alert_log.append([line])

    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {
        "alerts.jsonl": "four\n",
        "alerts.jsonl.1": "three\n",
    }


def test_half_a_line_of_a_killed_receiver_does_not_swallow_the_next(tmp_path: Path) -> None:
    file = tmp_path / "alerts.jsonl"
    file.write_text('whole\n{"half')

    AlertLog(file).append(["next"])

    assert file.read_text() == 'whole\n{"half\nnext\n'


def test_a_full_disk_leaves_no_part_of_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "alerts.jsonl"
    alert_log = AlertLog(file)
    alert_log.append(["one"])
    with monkeypatch.context() as disk:
        disk.setattr("os.fsync", failing(OSError("No space left on device")))
        with pytest.raises(OSError, match="No space"):
            alert_log.append(["two"])

    alert_log.append(["three"])

    assert file.read_text() == "one\nthree\n"


def test_the_receiver_needs_a_file_and_listens_everywhere_on_9094() -> None:
    assert ReceiverSettings.from_env({"ALERT_RECEIVER_FILE": "/a"}) == ReceiverSettings(
        file=Path("/a"), host="", port=9094
    )
    with pytest.raises(SettingsError, match="ALERT_RECEIVER_FILE is not set"):
        ReceiverSettings.from_env({})


@pytest.mark.parametrize("port", ["http", "-1", "65536", "9094.0", "٩"])
def test_an_invalid_port_is_rejected(port: str) -> None:
    with pytest.raises(SettingsError, match="ALERT_RECEIVER_PORT"):
        ReceiverSettings.from_env({"ALERT_RECEIVER_FILE": "/a", "ALERT_RECEIVER_PORT": port})
