"""Every question of sql/questions against events whose answer is known, and against the pipeline's own tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pyarrow as pa
import pytest

from gamelake.bronze.records import BRONZE_SCHEMA
from gamelake.dead_letters.letters import dead_letter_schema
from gamelake.silver.events import COMMON_SCHEMA, EVENT_DATE
from tests.stack.platform import ROOT, Stack
from tests.stack.trino_users import ANALYST, ENGINEER, NewTable, User, fill, new_lakehouse, new_table

FOLDER = ROOT / "sql/questions"
NAMES = sorted(file.stem for file in FOLDER.glob("*.sql"))
OF_ENGINEERS = {"dead_letters_by_reason"}
# Nothing about an hour ago can be known of a pipeline that may have started a minute ago.
ABOUT_AN_EARLIER_TIME = {"as_it_was_an_hour_ago"}

TODAY = datetime.now(UTC).date()
FIRST, SECOND = TODAY - timedelta(days=2), TODAY - timedelta(days=1)
FIRST_NOON, SECOND_NOON = (datetime.combine(day, time(12), UTC) for day in (FIRST, SECOND))
A, B = "Archery Duel", "Bingo Harbor"


@dataclass(frozen=True, slots=True)
class Event:
    """What the questions look at of an event; `minute` counts from noon, `late` is how long it was on its way."""

    day: date
    minute: int
    game_name: str
    event_name: str
    gamer_id: str
    session_id: str
    platform: str
    app_version: str
    amount: float | None = None
    late: timedelta | None = None

    @property
    def event_time(self) -> datetime:
        """When it happened."""
        return datetime.combine(self.day, time(12), UTC) + timedelta(minutes=self.minute)


EVENTS = [
    Event(FIRST, 0, A, "session_start", "p1", "s1", "ios", "1.0"),
    Event(FIRST, 10, A, "purchase", "p1", "s1", "ios", "1.0", 4.99, timedelta(minutes=5)),
    Event(FIRST, 0, A, "session_start", "p2", "s2", "android", "1.0"),
    Event(FIRST, 80, A, "level_started", "p2", "s2", "android", "1.0", late=timedelta(hours=2)),
    Event(SECOND, 0, A, "session_start", "p1", "s3", "ios", "1.1"),
    Event(SECOND, 30, A, "purchase", "p1", "s3", "ios", "1.1", 10.02),
    Event(SECOND, 0, A, "session_start", "p3", "s4", "ios", "1.0"),
    Event(SECOND, 5, B, "purchase", "p4", "s5", "android", "2.0", 2.5),
    Event(SECOND, 6, B, "purchase", "p4", "s5", "android", "2.0", None),
    Event(SECOND, 7, B, "smoke_test", "smoke", "", "", ""),
]


def silver_rows(events: list[Event], more: pa.Table | None = None) -> pa.Table:
    """Events as rows of a silver table."""
    rows = [
        {
            "event_time": event.event_time,
            "event_name": event.event_name,
            "game_name": event.game_name,
            "gamer_id": event.gamer_id,
            "session_id": event.session_id or None,
            "platform": event.platform or None,
            "app_version": event.app_version or None,
            "amount": event.amount,
            "ingest_time": event.event_time + event.late if event.late is not None else None,
            EVENT_DATE: event.day,
        }
        for event in events
    ]
    schema = pa.schema([*COMMON_SCHEMA, pa.field(EVENT_DATE, pa.date32())])
    table = pa.Table.from_pylist(rows, schema=schema)
    if more is not None:
        for name in more.column_names:
            table = table.append_column(name, more.column(name))
    return table


@pytest.fixture(scope="module")
def silver(stack: Stack) -> Iterator[NewTable]:
    """A table like silver.events of events that are known."""
    with new_lakehouse(stack) as place, new_table(place) as table:
        table.write(silver_rows(EVENTS))
        table.register()
        yield table


@dataclass(frozen=True, slots=True)
class Question:
    """A file of sql/questions."""

    name: str

    @property
    def text(self) -> str:
        """What the file says."""
        return (FOLDER / f"{self.name}.sql").read_text()

    @property
    def user(self) -> User:
        """Who may ask."""
        return ENGINEER if self.name in OF_ENGINEERS else ANALYST

    def of(self, table: NewTable, instead_of: str = "silver.events") -> list[list[Any]]:
        """The answer that another table gives."""
        schema, name = instead_of.split(".")
        own_schema, own_name = table.sql.split(".")
        about = self.text.replace(instead_of, table.sql).replace(
            f'{schema}."{name}$history"', f'{own_schema}."{own_name}$history"'
        )
        assert about != self.text
        return self.user.ask(about)


def test_every_question_has_a_test_here() -> None:
    tested = {name.removeprefix("test_answer_") for name in globals() if name.startswith("test_answer_")}

    assert sorted(tested) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_what_it_asks_who_may_and_what_a_row_is(name: str) -> None:
    lines = Question(name).text.splitlines()

    assert lines[0].startswith("-- ")
    assert lines[0].endswith("?")
    assert lines[1].startswith("-- Grain: one row per ")
    assert lines[2].startswith(f"-- Asked by: {Question(name).user.name}")


def test_the_list_of_questions_is_that_of_the_files() -> None:
    listed = dict(
        re.findall(r"^\| (.*\?) \| `(\w+)\.sql` \|$", (FOLDER.parent / "README.md").read_text(), re.MULTILINE)
    )

    assert {name: question for question, name in listed.items()} == {
        name: Question(name).text.splitlines()[0].removeprefix("-- ") for name in NAMES
    }


def test_the_pipelines_own_tables_answer_every_question(stack: Stack) -> None:
    """Each column exists, and each right is there; planned only, for at a desk the tables may be large."""
    assert stack.is_healthy("trino")
    fill(["silver.events", "silver.kart_rumble_events", "dead_letters.events"], "Kart Rumble")
    asked = [Question(name) for name in NAMES if name not in ABOUT_AN_EARLIER_TIME]

    answers = {question.name: question.user.refusal(f"EXPLAIN {question.text}") for question in asked}

    assert {name: refusal for name, refusal in answers.items() if refusal} == {}


def test_answer_daily_active_players(silver: NewTable) -> None:
    assert Question("daily_active_players").of(silver) == [[FIRST, A, 2, 4], [SECOND, A, 2, 3], [SECOND, B, 1, 2]]


def test_answer_events_per_hour(silver: NewTable) -> None:
    assert Question("events_per_hour").of(silver) == [
        [FIRST_NOON, A, 3],
        [FIRST_NOON + timedelta(hours=1), A, 1],
        [SECOND_NOON, A, 3],
        [SECOND_NOON, B, 3],
    ]


def test_answer_bookings_by_platform(silver: NewTable) -> None:
    assert Question("bookings_by_platform").of(silver) == [
        [FIRST, "ios", 4.99, 1],
        [SECOND, "android", 2.5, 1],
        [SECOND, "ios", 10.02, 1],
    ]


def test_answer_paying_players(silver: NewTable) -> None:
    assert Question("paying_players").of(silver) == [[A, 3, 1, 0.3333, 15.01], [B, 1, 1, 1.0, 2.5]]


def test_answer_version_adoption(silver: NewTable) -> None:
    assert Question("version_adoption").of(silver) == [
        [FIRST, A, "1.0", 2, 1.0],
        [SECOND, A, "1.0", 1, 0.5],
        [SECOND, A, "1.1", 1, 0.5],
        [SECOND, B, "2.0", 1, 1.0],
    ]


def test_answer_sessions(silver: NewTable) -> None:
    assert Question("sessions").of(silver) == [
        [FIRST, A, 2, 45.0, 2.0],
        [SECOND, A, 2, 15.0, 1.5],
        [SECOND, B, 1, 1.0, 2.0],
    ]


def test_answer_returning_players(silver: NewTable) -> None:
    assert Question("returning_players").of(silver) == [
        [FIRST, A, 2, 1, 0.5],
        [SECOND, A, 2, 0, 0.0],
        [SECOND, B, 1, 0, 0.0],
    ]


def test_answer_late_events(silver: NewTable) -> None:
    assert Question("late_events").of(silver) == [[FIRST, A, 2, 1, 120]]


def test_answer_freshness(silver: NewTable) -> None:
    newest = {A: SECOND_NOON + timedelta(minutes=30), B: SECOND_NOON + timedelta(minutes=7)}
    answers = Question("freshness").of(silver)

    assert [(game, at) for game, at, *_ in answers] == [(B, newest[B]), (A, newest[A])]
    for game, _, seconds_ago, median, p95 in answers:
        so_far = (datetime.now(UTC) - newest[game]).total_seconds()
        assert so_far - 300 <= seconds_ago <= so_far
        assert seconds_ago - 300 <= median <= p95 <= so_far + 1800


def test_answer_table_history(silver: NewTable) -> None:
    [[version, committed_at, operation, _]] = Question("table_history").of(silver)

    assert version == 0
    assert operation in {"CREATE TABLE", "WRITE"}
    assert abs(datetime.now(UTC) - committed_at) < timedelta(minutes=10)


def test_answer_one_game_device_clocks(stack: Stack) -> None:
    off = [timedelta(0), timedelta(seconds=40), timedelta(seconds=-90), None]
    events = [Event(SECOND, n, A, "level_started", "p", "s", "ios" if n < 3 else "web", "1.0") for n in range(len(off))]
    pairs = list(zip(events, off, strict=True))
    device = pa.table(
        {
            "device_id": ["d1", "d1", "d2", "d3"],
            "client_event_time": pa.array(
                [event.event_time + wrong if wrong is not None else None for event, wrong in pairs],
                COMMON_SCHEMA.field("event_time").type,
            ),
        }
    )
    with new_lakehouse(stack) as place, new_table(place) as table:
        table.write(silver_rows(events, device))
        table.register()

        assert Question("one_game_device_clocks").of(table, "silver.kart_rumble_events") == [["ios", 2, 40, 90]]


def test_answer_dead_letters_by_reason(stack: Stack) -> None:
    reasons = [("bad_framing", "short", 1), ("bad_framing", "shorter", 2), ("unroutable", "Chess", 1)]
    rows = [
        {"reason": reason, "detail": detail, "kafka_timestamp": SECOND_NOON + timedelta(minutes=minute)}
        for reason, detail, minute in reasons
    ]
    schema = pa.schema([*dead_letter_schema(BRONZE_SCHEMA), pa.field("ingest_date", pa.date32())])
    letters = pa.Table.from_pylist([row | {"ingest_date": SECOND} for row in rows], schema=schema)
    with new_lakehouse(stack) as place, new_table(place) as table:
        table.write(letters)
        table.register()

        assert Question("dead_letters_by_reason").of(table, "dead_letters.events") == [
            [SECOND, "bad_framing", 2, "shorter", SECOND_NOON + timedelta(minutes=2)],
            [SECOND, "unroutable", 1, "Chess", SECOND_NOON + timedelta(minutes=1)],
        ]


def test_answer_rows_since_a_version(stack: Stack) -> None:
    with new_lakehouse(stack) as place, new_table(place) as table:
        table.write(silver_rows(EVENTS[:4]))
        table.write(silver_rows(EVENTS[4:]))
        for version in range(2):
            table.back_date(version, timedelta(minutes=2 - version))
        table.register()

        assert Question("rows_since_a_version").of(table) == [[A, 4, 7, 3], [B, 0, 3, 3]]


def test_answer_as_it_was_an_hour_ago(stack: Stack) -> None:
    with new_lakehouse(stack) as place, new_table(place) as table:
        table.write(silver_rows(EVENTS[:4]))
        table.back_date(0, timedelta(hours=2))
        table.write(silver_rows(EVENTS[4:]))
        table.register()

        assert Question("as_it_was_an_hour_ago").of(table) == [[A, 4, FIRST_NOON + timedelta(minutes=80)]]
