"""The account of what the gateway says of each event."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from gamelake.model.errors import SettingsError
from services.sdk import Credentials, Form, Outcome, Parcel, Refusal, Rejection
from tools.simulator.cli import HttpTarget, parse
from tools.simulator.game_sdks import Acknowledgements, GameBooks, read_credentials
from tools.simulator.ledger import Acknowledged, HttpLedger, RequestTimes
from tools.simulator.sdk_payloads import Packet

SECRET = "a-secret-that-nobody-should-see-1"  # noqa: S105 # it opens nothing


def a_packet(count: int, *, copies: tuple[int, ...] = (), first_id: int = 0) -> Packet:
    ids = np.zeros((count, 16), dtype=np.uint8)
    ids[:, 15] = np.arange(first_id, first_id + count)
    return Packet(0, b"", ids, np.isin(np.arange(count), copies), np.arange(count, dtype=np.int64) + first_id)


def a_parcel(ticket: int, count: int, first: int = 0) -> Parcel:
    return Parcel(ticket, Form.PROTOBUF, count, b"", first)


def books_with(*waiting: Packet) -> tuple[GameBooks, io.BytesIO]:
    file = io.BytesIO()
    books = GameBooks(Acknowledgements(file))
    with books.lock:
        for ticket, packet in enumerate(waiting, start=1):
            books.hand_over(ticket, packet)
    return books, file


def last_digits(file: io.BytesIO) -> list[int]:
    return [int(line[-2:], 16) for line in file.getvalue().decode().split()]


def test_what_was_accepted_is_counted_and_named() -> None:
    books, file = books_with(a_packet(3), a_packet(4, copies=(1, 3), first_id=10))

    books.settle(
        Outcome(
            parcels=(a_parcel(1, 3), a_parcel(2, 4)),
            accepted=5,
            rejections=(Rejection(2, "malformed"), Rejection(4, "other_game")),
        )
    )

    assert (books.tally.sent, books.tally.acknowledged, books.tally.duplicates) == (7, 5, 1)
    assert books.tally.rejected == {"malformed": 1, "other_game": 1}
    assert last_digits(file) == [0, 1, 10, 12, 13]
    assert np.concatenate(books.tally.players).tolist() == [0, 1, 10, 12, 13]


def test_a_packet_that_was_divided_is_settled_part_by_part() -> None:
    books, file = books_with(a_packet(6))

    books.settle(Outcome(parcels=(a_parcel(1, 3),), accepted=3))
    books.settle(Outcome(parcels=(a_parcel(1, 1, first=3),), accepted=0, refusal=Refusal(413, "too large")))
    books.settle(Outcome(parcels=(a_parcel(1, 2, first=4),), accepted=1, rejections=(Rejection(0, "no_event_id"),)))

    assert (books.tally.acknowledged, books.tally.refused) == (4, 1)
    assert last_digits(file) == [0, 1, 2, 5]


def test_a_ledger_says_its_sums() -> None:
    ledger = HttpLedger(
        sent=10,
        by_game={"A": Acknowledged(5, 1), "B": Acknowledged(3, 0)},
        rejected={"malformed": 2},
        refused=0,
        unsettled=0,
        players=4,
        requests=2,
        retries=0,
        unanswered=0,
        sent_bytes=100,
        seconds=1.0,
        request_times=RequestTimes(p50_ms=1, p99_ms=1, max_ms=1),
        personal=("somebody",),
    )

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


def test_keys_are_read_in_the_gateways_form(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(f"keys:\n  - {{id: a-1, game: archery_duel, secrets: [{SECRET}, other], rate: 5}}\n")

    assert read_credentials(file) == {"archery_duel": Credentials("a-1", SECRET)}


@pytest.mark.parametrize("content", [None, f"keys: [{SECRET}]", f"{SECRET}: ["])
def test_a_keys_file_that_is_none_is_named_and_nothing_of_it_told(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "keys.yaml"
    if content is not None:
        file.write_text(content)

    with pytest.raises(SettingsError, match=r"keys\.yaml") as caught:
        read_credentials(file)

    assert SECRET not in str(caught.value)


def test_credentials_do_not_show_their_secret() -> None:
    assert SECRET not in repr(Credentials("a-1", SECRET))
