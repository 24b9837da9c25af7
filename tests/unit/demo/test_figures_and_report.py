"""The figures of a run, its charts and its report."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelake.delta.data_files import DataFile
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest
from services.portal.charts import nice_top, short
from tests.support.manifests import a_manifest
from tests.unit.demo.builders import a_summary
from tools.demo import charts
from tools.demo.evaluation import problems_at
from tools.demo.freshness import Delays, FreshnessPercentiles, delays_of
from tools.demo.pii_scan import tables_with
from tools.demo.report import as_page
from tools.demo.text_report import as_text


def a_batch_of(lakehouse: Path, name: str, rows: dict[str, list[float]]) -> BatchManifest:
    """A batch with one file in silver/events: for each game the times of its rows, in seconds since 1970."""
    names = [game for game, times in rows.items() for _ in times]
    micros = [int(moment * 1e6) for times in rows.values() for moment in times]
    table = pa.table({"game_name": names, "ingest_time": pa.array(micros, pa.timestamp("us", tz="UTC"))})
    (lakehouse / "silver/events").mkdir(parents=True, exist_ok=True)
    pq.write_table(table, lakehouse / "silver/events" / name)
    file = DataFile(path=name, size=1, rows=len(names), partition={}, statistics="{}")
    return a_manifest(tables=(TableFiles(table="silver/events", partition_by=(), schema="{}", files=(file,)),))


def at(seconds: float) -> datetime:
    """Return a time some seconds after 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def test_a_rows_freshness_is_from_its_arrival_to_its_batchs_commit(tmp_path: Path) -> None:
    first = a_batch_of(tmp_path, "one.parquet", {"Archery Duel": [100, 101], "Bingo Harbor": [103]})
    second = a_batch_of(tmp_path, "two.parquet", {"Bingo Harbor": [104, 108]})

    delays = delays_of(tmp_path, [(first, at(105)), (second, at(110))])

    assert {game: sorted(seconds) for game, seconds in delays.games.items()} == {
        "Archery Duel": [4.0, 5.0],
        "Bingo Harbor": [2.0, 2.0, 6.0],
    }
    assert delays.first_ingest == 100
    assert list(delays.once_running) == [2.0]


@pytest.mark.parametrize("longest", [0.003, 0.4, 33.1, 5_000.0])
def test_the_histogram_has_every_row_once_and_few_bins(longest: float) -> None:
    seconds = np.linspace(0, longest, 1_000)

    histogram = Delays({"A": seconds[:400], "B": seconds[400:]}, np.empty(0), 0).histogram()

    assert sum(histogram.rows) == 1_000
    assert len(histogram.rows) <= 41
    assert (len(histogram.rows) - 1) * histogram.bin_seconds <= longest


def test_a_clock_that_went_back_gives_no_negative_bin() -> None:
    assert Delays({"A": np.array([-0.2, 0.5])}, np.empty(0), 0).histogram().rows[0] >= 1


def test_freshness_without_rows_has_a_row_count_of_zero() -> None:
    assert FreshnessPercentiles.of(np.empty(0)).rows == 0


@pytest.mark.parametrize("draw", charts.ALL, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize("batches", [1, 2, 300])
def test_each_chart_is_well_formed_and_has_a_description(draw: charts.Chart, batches: int) -> None:
    svg = ET.fromstring(draw(a_summary(batches=batches)))  # noqa: S314 # our own

    assert svg.get("role") == "img"
    names = {each.get("id"): each.text for each in svg}
    assert all(names[name] for name in (svg.get("aria-labelledby") or "").split())
    assert all(title.text for title in svg.iter("title"))
    numbers = [float(rect.get(side, "")) for rect in svg.iter("rect") for side in ("x", "y", "width", "height")]
    assert all(np.isfinite(numbers))
    assert min(numbers, default=0) >= 0


@pytest.mark.parametrize(("value", "top"), [(0, 1), (0.7, 0.8), (1, 1), (239_000, 240_000), (36.5, 40), (1e6, 1e6)])
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (0.25, "0.25"), (1_500, "1.5 k"), (2_000_000, "2 M")])
def test_numbers_along_an_axis_are_short(value: float, text: str) -> None:
    assert short(value) == text


class OpenTags(HTMLParser):
    """Collects tags that are not closed, and all addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag unless nothing ever closes it."""
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_self_contained() -> None:
    page = as_page(a_summary())
    parser = OpenTags()

    parser.feed(page)

    assert parser.open == []
    assert parser.addresses == []
    assert "url(" not in page
    assert "Reconciliation: no differences" in page


def test_the_page_has_the_gateways_figures() -> None:
    page = as_page(a_summary())

    assert "rejected: other_game" in page
    assert "p99 40 ms" in page
    assert "in the vault, of all runs, 60" in page


def test_personal_data_is_found_in_any_column(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "clean": ["nothing here", None],
            "inside": [{"deep": {"er": "x"}}, {"deep": {"er": "says mail@a.example here"}}],
            "bytes": [b"\x00\xffbinary", b"p1234567\xfe Gr\xc3\xbcnwald"],
            "lists": [["a"], ["b", "v7654321"]],
            "maps": pa.array([[("k", "v")], [("g(o)d", "w")]], pa.map_(pa.string(), pa.string())),
        }
    )
    manifest = a_batch_of(tmp_path, "one.parquet", {"Archery Duel": [100]})
    pq.write_table(rows, tmp_path / "silver/events/one.parquet")

    for text in ("mail@a.example", "p1234567", "v7654321", "g(o)d", "Grünwald"):
        assert tables_with(["no such", text], tmp_path, [manifest]) == ["silver/events"]
    assert tables_with(["no such", "mail@b"], tmp_path, [manifest]) == []
    assert tables_with([], tmp_path, [manifest]) == []


def test_a_vault_that_lacks_players_is_a_problem() -> None:
    gateway = a_summary().gateway

    assert list(problems_at(gateway)) == []
    assert len(list(problems_at(replace(gateway, players_in_vault=29)))) == 1


def test_the_page_lists_the_problems() -> None:
    page = as_page(a_summary(problems=("silver/<b>_events gained 1 rows instead of 2",)))

    assert "Reconciliation: no differences" not in page
    assert "Reconciliation failed: 1 problems" in page
    assert "silver/&lt;b&gt;_events gained 1 rows instead of 2" in page


def test_the_note_on_queued_rows_is_only_for_runs_without_a_rate() -> None:
    assert "queued" in as_page(a_summary(rate=0))
    assert "queued" not in as_page(a_summary(rate=10_000))


def test_the_text_ends_with_the_verdict() -> None:
    assert "Reconciliation: no differences" in as_text(a_summary()).splitlines()[-1]
    assert as_text(a_summary(problems=("a", "b"))).splitlines()[-3:] == [
        "PROBLEM a",
        "PROBLEM b",
        "Reconciliation failed: 2 problems.",
    ]


def test_the_text_has_the_gateways_figures() -> None:
    text = as_text(a_summary())

    assert "190 events acknowledged, 45/s; rejected: 3 malformed, 1 other_game; 4 duplicates" in text
    assert "8 requests, p50 12 ms, p99 40 ms, 1 of them retries" in text


def test_the_summary_is_written_as_json() -> None:
    document = json.loads(a_summary().to_json())

    assert document["totals"]["records"] == sum(batch["records"] for batch in document["batches"])
    assert document["verdict"]["problems"] == []
