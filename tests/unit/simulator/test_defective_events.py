"""Events with defects have them in the shares of the spec, and the ledger counts all of them."""

import json
from collections import Counter
from math import sqrt
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from ptars import HandlerPool

from gamelake.contract.games import load_games
from gamelake.model.errors import SettingsError
from gamelake.schemas.framing import HEADER_BYTES
from tests.unit.simulator.builders import (
    FIRST_SCHEMA_ID,
    GAMES,
    NOW_US,
    a_run,
    a_spec,
    decode,
    encoders,
    events,
    only,
    records,
    records_of,
    schemas,
)
from tools.simulator.defects import UNKNOWN_SCHEMA_ID, Corruption
from tools.simulator.ledger import KafkaLedger, KafkaLedgerBuilder
from tools.simulator.reference_data import UNKNOWN_GAMES
from tools.simulator.spec import NEWEST_VERSION, Shares, TrafficSpec
from tools.simulator.traffic import TrafficGenerator

_HOUR_US = 3600 * 1_000_000
CONTRACT = Path(__file__).resolve().parents[3] / "contracts/games.yaml"
_BAD = Shares(
    late=0.05, future=0.04, duplicate=0.03, undecodable=0.08, unknown_game=0.02, null_time=0.06, wrong_clock=0.03
)


def _run(spec: TrafficSpec) -> tuple[list[tuple[str, bytes]], KafkaLedger]:
    traffic = TrafficGenerator(spec, encoders(), clock=lambda: NOW_US)
    builder, sent = KafkaLedgerBuilder(spec), []
    for batch in traffic.batches():
        sent += records_of(batch)
        builder.add(batch.events, records=len(batch.values), value_bytes=batch.value_bytes)
    return sent, builder.build(acked=len(sent))


def _kind(value: bytes) -> Corruption | None:
    """The reason why a value cannot be decoded, as a reader of the frame finds it."""
    if value[0] != 0:
        return Corruption.WRONG_MAGIC
    if int.from_bytes(value[1:5], "big") == UNKNOWN_SCHEMA_ID:
        return Corruption.UNKNOWN_SCHEMA
    try:
        decode(value)
    except DecodeError:
        return Corruption.RANDOM_BODY if value[HEADER_BYTES] == 0x0F else Corruption.TRUNCATED_BODY
    return None


def _about(count: int, share: float, events: int) -> bool:
    return abs(count - share * events) < 5 * sqrt(events * share)


def test_the_shares_are_met() -> None:
    ledger = _run(a_spec(events=20_000, shares=_BAD))[1]

    assert _about(ledger.late, _BAD.late, 20_000)
    assert _about(ledger.future, _BAD.future, 20_000)
    assert _about(ledger.duplicates, _BAD.duplicate, 20_000)
    assert _about(ledger.null_time, _BAD.null_time, 20_000)
    assert _about(ledger.wrong_clock, _BAD.wrong_clock, 20_000)
    assert _about(sum(ledger.undecodable.values()), _BAD.undecodable, 20_000)
    assert _about(sum(ledger.unknown_game.values()), _BAD.unknown_game, 20_000)


def test_the_ledgers_counts_sum_up_to_the_records_sent() -> None:
    sent, ledger = _run(a_spec(shares=_BAD))

    good = sum(game.events for game in ledger.by_game.values())
    bad = sum(ledger.undecodable.values()) + sum(ledger.unknown_game.values())
    assert good + bad == 6_000
    assert ledger.sent == good + bad + ledger.duplicates == len(sent) == sum(ledger.by_version.values())
    assert ledger.value_bytes == sum(len(value) for _, value in sent)


def test_the_ledger_counts_the_same_as_a_reader() -> None:
    sent, ledger = _run(a_spec(shares=_BAD))
    kinds = [_kind(value) for _, value in sent]
    decoded = [decode(value)[1] for (_, value), kind in zip(sent, kinds, strict=True) if kind is None]
    games = Counter(event.game_name for event in decoded)

    assert ledger.undecodable == {kind: kinds.count(kind) for kind in Corruption}
    assert ledger.null_time == sum(not event.HasField("event_time") for event in decoded)
    assert ledger.unknown_game == {name: games[name] for name in UNKNOWN_GAMES}
    for name in GAMES:
        assert ledger.by_game[name].events + ledger.by_game[name].duplicated == games[name]


def test_a_run_without_defects_has_none_in_its_ledger() -> None:
    ledger = _run(a_spec())[1]

    assert ledger.sent == sum(game.on_time for game in ledger.by_game.values()) == 6_000


def test_a_ledger_can_be_read_by_a_program() -> None:
    ledger = _run(a_spec(shares=_BAD))[1]

    written = json.loads(ledger.to_json())

    assert written["sent"] == written["acked"] == ledger.sent
    assert written["by_game"]["Archery Duel"]["late"] == ledger.by_game["Archery Duel"].late
    assert set(written["undecodable"]) == {"random_body", "truncated_body", "wrong_magic", "unknown_schema"}


def test_a_duplicate_is_the_same_bytes_for_the_same_player() -> None:
    counts = Counter(records(a_run(shares=only(duplicate=0.2))))

    assert set(counts.values()) == {1, 2}
    assert len(counts) == 6_000


def test_a_duplicate_keeps_its_event_id() -> None:
    ids = Counter(sent.event.event_id for sent in events(a_run(shares=only(duplicate=1.0))))

    assert set(ids.values()) == {2}


def test_no_corrupted_value_decodes_to_an_event() -> None:
    kinds = [_kind(value) for _, value in records(a_run(shares=only(undecodable=1.0)))]

    assert None not in kinds
    assert set(kinds) == set(Corruption)


def test_the_decoder_of_the_streams_rejects_corrupted_bodies_too() -> None:
    handlers = [HandlerPool([schema.message.file]).get_for_message(schema.message) for schema in schemas()]
    for _, value in records(a_run(shares=only(undecodable=1.0), events=2_000)):
        if _kind(value) in {Corruption.RANDOM_BODY, Corruption.TRUNCATED_BODY}:
            handler = handlers[int.from_bytes(value[1:5], "big") - FIRST_SCHEMA_ID]
            with pytest.raises(ValueError, match="failed to decode"):
                handler.list_to_record_batch([value[HEADER_BYTES:]])


def test_events_of_unknown_games_are_complete_except_for_the_name() -> None:
    names = {sent.event.game_name for sent in events(a_run(shares=only(unknown_game=1.0)))}

    assert names == set(UNKNOWN_GAMES)


def test_events_without_a_time_keep_everything_else() -> None:
    for sent in events(a_run(shares=only(null_time=1.0))):
        assert not sent.event.HasField("event_time")
        assert sent.event.HasField("ingest_time")
        assert sent.event.event_params.HasField("client_event_time")


def test_late_events_are_hours_to_three_days_old() -> None:
    ages = [NOW_US - sent.event.event_time.ToMicroseconds() for sent in events(a_run(shares=only(late=1.0)))]

    assert min(ages) > 2 * _HOUR_US
    assert max(ages) < 73 * _HOUR_US
    assert max(ages) > 48 * _HOUR_US


def test_events_of_a_wrong_clock_are_older_than_the_contract_takes() -> None:
    ages = [NOW_US - sent.event.event_time.ToMicroseconds() for sent in events(a_run(shares=only(wrong_clock=1.0)))]
    longest_days = load_games(CONTRACT).event_time.max_age_days

    assert min(ages) > longest_days * 24 * _HOUR_US
    assert max(ages) < 4 * 365 * 24 * _HOUR_US


def test_values_of_an_unknown_schema_are_complete_but_for_its_id() -> None:
    sent, ledger = _run(a_spec(shares=only(unknown_schema=0.5)))
    kinds = [_kind(value) for _, value in sent]

    assert set(kinds) == {None, Corruption.UNKNOWN_SCHEMA}
    assert ledger.undecodable == {kind: kinds.count(kind) for kind in Corruption}
    assert _about(ledger.undecodable[Corruption.UNKNOWN_SCHEMA], 0.5, 6_000)


def test_future_events_are_at_most_twenty_hours_ahead() -> None:
    leads = [sent.event.event_time.ToMicroseconds() - NOW_US for sent in events(a_run(shares=only(future=1.0)))]

    assert min(leads) > 0
    assert max(leads) <= 20 * _HOUR_US


@pytest.mark.parametrize("shares", [{"late": -0.1}, {"late": 0.6, "duplicate": 0.6}])
def test_impossible_shares_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        only(**shares)


def test_every_schema_of_the_contract_can_be_loaded() -> None:
    assert [schema.version for schema in schemas()] == list(range(1, NEWEST_VERSION + 1))
