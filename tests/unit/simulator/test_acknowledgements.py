"""The outcome of each event that is sent to the gateway."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from gamelake.model.arrays import Flags
from gamelake.model.errors import SettingsError
from services.sdk import BatchOutcome, Credentials, EventFormat, EventGroup, Refusal, Rejection
from tests.unit.demo.builders import an_http_ledger
from tools.simulator.cli import HttpTarget, parse
from tools.simulator.game_sdks import AcknowledgedIdsFile, DeliveryTracker, read_credentials
from tools.simulator.ledger import AcknowledgedEvents
from tools.simulator.sdk_payloads import SdkPayload

SECRET = "a-secret-that-must-not-be-shown-1"  # noqa: S105 # it opens nothing


def a_payload(count: int, *, copies: tuple[int, ...] = (), first_id: int = 0) -> SdkPayload:
    ids = np.zeros((count, 16), dtype=np.uint8)
    ids[:, 15] = np.arange(first_id, first_id + count)
    return SdkPayload(0, b"", ids, np.isin(np.arange(count), copies), np.arange(count, dtype=np.int64) + first_id)


def a_group(ticket: int, count: int, first: int = 0) -> EventGroup:
    return EventGroup(ticket, EventFormat.PROTOBUF, count, b"", first)


def tracker_with(*waiting: SdkPayload, players: Flags | None = None) -> tuple[DeliveryTracker, io.BytesIO]:
    file = io.BytesIO()
    deliveries = DeliveryTracker(AcknowledgedIdsFile(file), np.zeros(20, np.bool_) if players is None else players)
    with deliveries.lock:
        for ticket, payload in enumerate(waiting, start=1):
            deliveries.hand_over(ticket, payload)
    return deliveries, file


def last_digits(file: io.BytesIO) -> list[int]:
    return [int(line[-2:], 16) for line in file.getvalue().decode().split()]


def test_acknowledged_events_are_counted_and_their_ids_written() -> None:
    players = np.zeros(20, np.bool_)
    deliveries, file = tracker_with(a_payload(3), a_payload(4, copies=(1, 3), first_id=10), players=players)

    deliveries.settle(
        BatchOutcome(
            groups=(a_group(1, 3), a_group(2, 4)),
            accepted=5,
            rejections=(Rejection(2, "malformed"), Rejection(4, "other_game")),
        )
    )

    assert (deliveries.counts.sent, deliveries.counts.acknowledged, deliveries.counts.duplicates) == (7, 5, 1)
    assert deliveries.counts.rejected == {"malformed": 1, "other_game": 1}
    assert last_digits(file) == [0, 1, 10, 12, 13]
    assert np.flatnonzero(players).tolist() == [0, 1, 10, 12, 13]


def test_a_payload_that_was_divided_is_settled_part_by_part() -> None:
    deliveries, file = tracker_with(a_payload(6))

    deliveries.settle(BatchOutcome(groups=(a_group(1, 3),), accepted=3))
    deliveries.settle(BatchOutcome(groups=(a_group(1, 1, first=3),), accepted=0, refusal=Refusal(413, "too large")))
    deliveries.settle(
        BatchOutcome(groups=(a_group(1, 2, first=4),), accepted=1, rejections=(Rejection(0, "no_event_id"),))
    )

    assert (deliveries.counts.acknowledged, deliveries.counts.refused) == (4, 1)
    assert last_digits(file) == [0, 1, 2, 5]


def test_a_ledger_has_its_totals() -> None:
    ledger = an_http_ledger(by_game={"A": AcknowledgedEvents(5, 1), "B": AcknowledgedEvents(3, 0)})

    written = json.loads(ledger.to_json())

    assert (written["target"], written["acknowledged"], written["duplicates"]) == ("http", 8, 1)
    assert ledger.by_game["A"].rows == 4


def test_the_gateway_is_the_target_unless_kafka_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(["--url", "http://gateway", "--keys-file", "keys.yaml", "--acknowledged", "ids"])

    assert options.target == HttpTarget(url="http://gateway", keys_file=Path("keys.yaml"), acknowledged=Path("ids"))
    for incomplete in (["--url", "http://gateway"], ["--target", "kafka"]):
        with pytest.raises(SystemExit):
            parse(incomplete)
    assert "needs --keys-file" in capsys.readouterr().err


def test_keys_are_read_in_the_gateways_format(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(f"keys:\n  - {{id: a-1, game: archery_duel, secrets: [{SECRET}, other], rate: 5}}\n")

    assert read_credentials(file) == {"archery_duel": Credentials("a-1", SECRET)}


def test_a_key_of_support_staff_sends_no_events(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    keys = [
        f"{{id: a-1, game: archery_duel, secrets: [{SECRET}]}}",
        f"{{id: a-1-support, role: support, game: archery_duel, secrets: [{'s' * 40}]}}",
    ]
    file.write_text(f"keys: [{', '.join(keys)}]\n")

    assert read_credentials(file) == {"archery_duel": Credentials("a-1", SECRET)}


@pytest.mark.parametrize("content", [None, f"keys: [{SECRET}]", f"{SECRET}: ["])
def test_a_malformed_keys_file_is_named_and_none_of_its_content_shown(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "keys.yaml"
    if content is not None:
        file.write_text(content)

    with pytest.raises(SettingsError, match=r"keys\.yaml") as caught:
        read_credentials(file)

    assert SECRET not in str(caught.value)


def test_credentials_do_not_show_their_secret() -> None:
    assert SECRET not in repr(Credentials("a-1", SECRET))
