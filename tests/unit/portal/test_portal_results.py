"""A result is a table without empty columns, a chart of its measure, and files that have the same rows."""

import base64
import csv
import io
import json
from datetime import date
from decimal import Decimal
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.portal.display import NO_VALUE
from services.portal.question_page import question_page
from services.portal.questions import QuestionResult
from services.portal.result_view import as_csv, as_json, view_of
from services.portal.templates import PortalTemplates
from tests.unit.portal.portals import QUESTION, Elements
from tests.unit.properties import examples

VALUES = st.one_of(st.none(), st.integers(-(10**9), 10**9), st.floats(), st.text())
NUMBERS = st.one_of(st.none(), st.integers(-(10**18), 10**18), st.floats())


def result(columns: str, *rows: tuple[object, ...]) -> QuestionResult:
    return QuestionResult(tuple(columns.split()), rows, is_cut=False)


DAYS = result(
    "event_date game_name players bookings",
    (date(2026, 11, 29), "Archery Duel", 10, Decimal("5.5")),
    (date(2026, 11, 29), "Bingo Harbor", 2000, None),
    (date(2026, 11, 30), "Archery Duel", 30, Decimal("7.25")),
)


def test_days_of_games_are_a_line_for_each_game() -> None:
    view = view_of("days", "How many?", DAYS)

    assert view.legend == ("Archery Duel",)
    assert view.rows[1] == ("2026-11-29", "Bingo Harbor", "2,000", NO_VALUE)
    assert "Archery Duel, 2026-11-30: $7.25" in str(view.chart)


def test_a_result_without_days_is_a_bar_for_each_row() -> None:
    view = view_of("x", "How many?", result("game_name paying_share players", ("A", 0.5, 1), ("B", -0.25, 2)))

    assert view.legend == ()
    assert "A: 50.0%" in str(view.chart)
    assert "B: -25.0%" in str(view.chart)


@pytest.mark.parametrize(
    "found",
    [result("players", (1,)), result("a b", ("x", "y"), ("z", "w")), result("gamer_id", (1,), (2,)), result("players")],
)
def test_nothing_is_drawn_of_one_value_of_texts_or_of_identifiers(found: QuestionResult) -> None:
    assert view_of("x", "How many?", found).chart is None


def test_a_column_without_values_is_left_out_and_named() -> None:
    page = question_page(
        QUESTION, PortalTemplates(), result("game_name day_30_share players", ("A", None, 1), ("B", None, 2))
    )

    assert "left out: day 30 share" in page
    assert [cell for cell in Elements(page).all("th") if cell.get("scope") == "col"] == [
        {"scope": "col"},
        {"scope": "col", "class": "number"},
    ]


def test_the_files_have_the_rows_of_the_page() -> None:
    downloads = {each.name: each.address for each in view_of("days", "How many?", DAYS).downloads}
    contents = {name: base64.b64decode(address.partition("base64,")[2]).decode() for name, address in downloads.items()}

    assert list(csv.reader(io.StringIO(contents["days.csv"])))[1] == ["2026-11-29", "Archery Duel", "10", "5.5"]
    assert json.loads(contents["days.json"])[2] == {
        "event_date": "2026-11-30",
        "game_name": "Archery Duel",
        "players": 30,
        "bookings": 7.25,
    }


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-cmd", "@x", "\tx", "\rx"])
def test_a_text_that_a_spreadsheet_would_run_is_quoted(formula: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(result("game_name events", (formula, -5))), newline="")))

    assert rows[1] == [f"'{formula}", "-5"]


@examples(50)
@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=20))
def test_any_values_are_a_page_that_is_well_formed_and_files_that_can_be_read(rows: list[tuple[object, ...]]) -> None:
    found = QuestionResult(("event_date", "game_name", "players"), tuple(rows), is_cut=False)

    Elements(question_page(QUESTION, PortalTemplates(), found))

    assert len(json.loads(as_json(found))) == len(rows)
    assert len(list(csv.reader(io.StringIO(as_csv(found), newline="")))) == len(rows) + 1


@examples(50)
@given(st.lists(NUMBERS, min_size=2, max_size=20))
@example([5e-324, 0.0])
def test_a_chart_draws_each_number_that_is_finite_inside_its_frame(values: list[float | None]) -> None:
    rows = [(date.fromordinal(739_000 + place), value) for place, value in enumerate(values)]

    chart = view_of("x", "How many?", result("event_date players", *rows)).chart

    if chart is not None:
        root = ET.fromstring(str(chart))  # noqa: S314 # our own
        heights = [float(circle.attrib["cy"]) for circle in root.iter("circle")]
        assert len(heights) == sum(value is not None and abs(value) < 1e100 for value in values)
        assert all(0 <= height <= float(root.attrib["viewBox"].split()[3]) for height in heights)


@pytest.mark.parametrize("count", [2, 3, 5, 24, 200])
@pytest.mark.parametrize("moment", ["2026-11-29", "2026-11-29 08:00"])
def test_the_texts_below_a_chart_are_within_it_and_apart(moment: str, count: int) -> None:
    rows = [(f"{moment[:-2]}{place:02}", place) for place in range(count)]

    chart = view_of("x", "How many?", result("event_date players", *rows)).chart

    root = ET.fromstring(str(chart))  # noqa: S314 # our own
    width = float(root.attrib["viewBox"].split()[2])
    places = [
        (float(each.attrib["x"]), len(each.text or "") * 9.5)
        for each in root.iter("text")
        if (each.text or "").startswith("11-")
    ]
    assert places
    assert all(middle - size / 2 >= 0 and middle + size / 2 <= width for middle, size in places)
    assert all(left[0] + left[1] <= right[0] for left, right in pairwise(places))


def test_a_date_is_not_broken_into_lines() -> None:
    page = question_page(QUESTION, PortalTemplates(), DAYS)

    assert page.count('<th scope="row" class="moment">2026-11-29</th>') == 2
    assert 'class="moment">Archery' not in page


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;", "A" * 400])
def test_the_name_of_a_game_is_text_in_a_chart(name: str) -> None:
    chart = view_of("x", name, result("game_name players", (name, 1), (f"{name}2", 2))).chart

    root = ET.fromstring(str(chart))  # noqa: S314 # our own
    assert {element.tag for element in root.iter()} <= {"svg", "title", "desc", "text", "rect"}
    assert root.findtext("title") == name
