"""Runs of the demo that never ran."""

from dataclasses import replace

from tools.demo.figures import (
    BatchFigures,
    GameFigures,
    GatewayFigures,
    RunParameters,
    RunSample,
    RunVerdict,
    Summary,
    Times,
    Totals,
)
from tools.demo.freshness import FreshnessPercentiles, Histogram
from tools.demo.key_figures import GameKeyFigures, KeyFigures
from tools.demo.verification import RunLedgers
from tools.simulator.ledger import AcknowledgedEvents, GameCounts, HttpLedger, KafkaLedger, RequestTimes

TABLES = {"Archery Duel": "silver/archery_duel_events", "Bingo Harbor": "silver/bingo_harbor_events"}
SOME_FRESHNESS = FreshnessPercentiles(rows=90, p50_seconds=1.5, p95_seconds=2.5, max_seconds=3.0)


def a_ledger() -> KafkaLedger:
    """Two games' accounts with one event at least of every kind."""
    return KafkaLedger(
        sent=76,
        acked=76,
        value_bytes=7_000,
        duplicates=3,
        late=4,
        future=2,
        null_time=5,
        wrong_clock=6,
        by_game={
            "Archery Duel": GameCounts(on_time=20, late=3, future=2, duplicated=1, null_time=4, wrong_clock=4),
            "Bingo Harbor": GameCounts(on_time=15, late=1, future=0, duplicated=2, null_time=1, wrong_clock=2),
        },
        unknown_game={"Mystery Quest": 3, "Castle Beta": 2},
        undecodable={"random_body": 4, "truncated_body": 3, "wrong_magic": 5, "unknown_schema": 1},
        by_version={1: 36, 2: 40},
    )


def an_http_ledger(**changes: object) -> HttpLedger:
    """What the gateway has acknowledged to the games; nothing unless it is said."""
    nothing = HttpLedger(
        sent=0,
        by_game={},
        rejected={},
        refused=0,
        unsettled=0,
        players=0,
        requests=0,
        retries=0,
        unanswered=0,
        sent_bytes=0,
        seconds=1.0,
        request_times=RequestTimes(p50_ms=1, p99_ms=2, max_ms=3),
        personal=(),
    )
    return replace(nothing, **changes)  # type: ignore[arg-type] # a test names fields of the ledger


def ledgers(**by_game: AcknowledgedEvents) -> RunLedgers:
    """Return both accounts of a run, with the acknowledged events by the games' names in the contract."""
    titles = {title.lower().replace(" ", "_"): title for title in TABLES}
    return RunLedgers(a_ledger(), an_http_ledger(by_game={titles[name]: each for name, each in by_game.items()}))


def a_batch(number: int) -> BatchFigures:
    """A batch of a hundred records."""
    return BatchFigures(
        batch=number,
        ended=10.0 + 2 * number,
        records=100,
        dead_letters=10,
        tables=4,
        files=6,
        bytes=5_000,
        decide_seconds=1.5,
        commit_seconds=0.25,
    )


def a_game(name: str = "Archery Duel") -> GameFigures:
    return GameFigures(
        game=name,
        table="silver/archery_duel_events",
        rows=90,
        files=3,
        bytes=4_500,
        bytes_per_row=50.0,
        rows_in_table=90,
        freshness=SOME_FRESHNESS,
    )


SOME_KEY_FIGURES = KeyFigures(
    games=(
        GameKeyFigures(game="Archery Duel", events=80, players=30, sessions=40, payers=3, bookings=44.97),
        GameKeyFigures(game="Bingo Harbor", events=10, players=0, sessions=0, payers=0, bookings=0.0),
    )
)


def some_gateway(batches: int) -> GatewayFigures:
    """What came over HTTP."""
    return GatewayFigures(
        acknowledged=95 * batches,
        acknowledged_per_second=45,
        duplicates=2 * batches,
        rejected={"malformed": 3, "other_game": 1},
        requests=8,
        retries=1,
        p50_ms=12.5,
        p99_ms=40.0,
        max_ms=41.0,
        players=30,
        players_in_vault=60,
        personal_texts=80,
    )


def a_summary(*, problems: tuple[str, ...] = (), batches: int = 2, rate: int = 0) -> Summary:
    taken = tuple(a_batch(number) for number in range(batches))
    return Summary(
        asked=RunParameters(
            events=100 * batches,
            games=1,
            versions=3,
            rate=rate,
            seed=7,
            max_records_per_batch=100,
            started_at="2026-11-21T10:40:37+00:00",
        ),
        verdict=RunVerdict(
            problems=problems,
            batches_in_lakehouse=batches,
            records_in_lakehouse=100 * batches,
            rows_in_lakehouse=90 * batches,
            dead_letters_in_lakehouse=6 * batches,
            duplicates_in_lakehouse=4 * batches,
        ),
        totals=Totals(
            records=100 * batches,
            rows=90 * batches,
            dead_letters=6 * batches,
            duplicates=4 * batches,
            bytes=5_000 * batches,
            files=6 * batches,
            records_per_second=50,
            records_per_busy_second=57,
            peak_memory_bytes=2**31,
        ),
        times=Times(
            services_ready=4.0,
            simulator_started=4.2,
            first_event=6.0,
            first_commit=10.0,
            last_commit=8.0 + 2 * batches,
            finished=15.0,
        ),
        gateway=some_gateway(batches),
        freshness=SOME_FRESHNESS,
        freshness_once_running=SOME_FRESHNESS,
        histogram=Histogram(bin_seconds=0.5, rows=(0, 10, 50, 20, 10)),
        games=(a_game(),),
        key_figures=SOME_KEY_FIGURES,
        dead_letters={"undecodable": 15, "unroutable": 5},
        broken_rules={"clock_is_not_far_ahead": 3},
        batches=taken,
        samples=(
            RunSample(seconds=4.5, produced=0, taken=0, memory_bytes=2**30),
            RunSample(seconds=8.0, produced=100 * batches, taken=0, memory_bytes=2**31),
            RunSample(seconds=14.0, produced=100 * batches, taken=100 * batches, memory_bytes=2**30),
        ),
    )
