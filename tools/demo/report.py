"""The report of a run as one self-contained HTML page."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from xml.etree import ElementTree as ET

from gamelake.quality.check_findings import Bounds
from tools.demo import charts
from tools.demo.figures import GameFigures, GatewayFigures, Summary, Totals
from tools.demo.key_figures import GameKeyFigures
from tools.demo.plot import LabelledBar, bar_list
from tools.demo.validation import ExpectationCounts, Failure, Validation

_COLUMNS = ("failed", "of", "severity", "observed", "expected", "ask")
_ALL_GAMES = "all games"
_SHOWN = 50
_GIB = 2**30
_SHOWN_PROBLEMS = 50
_GAME_COLUMNS = ("game", "rows", "files", "bytes/row", "p50 s", "p95 s", "rows in table")
_KEY_COLUMNS = ("game", "events", "players", "sessions", "paying players", "conversion", "bookings $", "per player $")


def page_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; the first column has the row headers."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def as_section(validation: Validation | None) -> str:
    """The expectations by game as a chart, and a table of the failed ones; a hint if none were evaluated."""
    if validation is None:
        return "<p><code>make quality</code> validates the newest day and shows its results here.</p>"
    section = f"<p>{_counts_text(validation)}</p>{_key()}{ET.tostring(expectations(validation), encoding='unicode')}"
    if not validation.failures:
        return section
    return section + page_table(_COLUMNS, map(_failure, validation.failures[:_SHOWN]))


def expectations(validation: Validation) -> ET.Element:
    """A chart of the passed and failed expectations of each game."""
    return bar_list("Expectations by game", [_bar(game) for game in validation.games])


def _counts_text(validation: Validation) -> str:
    passed = sum(game.passed for game in validation.games)
    skipped = sum(game.skipped for game in validation.games)
    return (
        f"The day {validation.day}, validated on {validation.validated_at:%d %B %Y, %H:%M} UTC: "
        f"{passed:,} expectations passed, {len(validation.failures):,} failed, {skipped:,} were skipped without data."
    )


def _key() -> str:
    return (
        '<p><i class="key a"></i><span>passed</span> <i class="key b"></i><span>failed</span>; skipped ones are '
        "left out</p>"
    )


def _bar(game: ExpectationCounts) -> LabelledBar:
    name = game.game or _ALL_GAMES
    title = f"{name}: {game.passed} passed, {game.failed} failed, {game.skipped} skipped"
    return LabelledBar(name, game.passed + game.failed, title, rest=game.failed)


def _failure(failure: Failure) -> tuple[str, ...]:
    return (
        failure.expectation,
        f"{failure.game or _ALL_GAMES}, {failure.suite}",
        failure.severity,
        f"{failure.observed or 0:,.6g}",
        Bounds(failure.least, failure.most).text,
        failure.owner,
    )


_TEMPLATE = Path(__file__).with_name("report.html.template")


def as_page(summary: Summary, validation: Validation | None = None) -> str:
    """Fill the template with the figures of a run and the newest validation of its tables."""
    drawn = {draw.__name__: ET.tostring(draw(summary), encoding="unicode") for draw in charts.ALL}
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        drawn,
        heading=escape(heading(summary)),
        started_at=f"{datetime.fromisoformat(summary.asked.started_at):%d %B %Y, %H:%M} UTC",
        verdict_class="good" if summary.verdict.is_consistent else "bad",
        verdict=_verdict(summary),
        tiles=_tiles(summary),
        burst_note=_burst_note(summary),
        gateway=_gateway(summary.gateway),
        validation=as_section(validation),
        games=page_table(_GAME_COLUMNS, map(_game, summary.games)),
        key_figures=page_table(_KEY_COLUMNS, map(_key_figures, summary.key_figures.games)),
    )


def heading(summary: Summary) -> str:
    """The parameters of the run, in one line."""
    asked = summary.asked
    pace = f"at {asked.rate:,} per second" if asked.rate else "as fast as they can be sent"
    return f"{asked.events:,} events of {asked.games} games, {pace}"


def _burst_note(summary: Summary) -> str:
    if summary.asked.rate:
        return ""
    return (
        "<p>The simulator sent everything at once while the job was still starting, so these seconds are mostly the "
        "time that rows queued. <code>make demo RATE=10000</code> shows a steady stream.</p>"
    )


def _once_running(summary: Summary) -> str:
    fresh = summary.freshness_once_running
    return f"; once the job ran p95 {fresh.p95_seconds:.1f} s, p50 {fresh.p50_seconds:.1f} s" if fresh.rows else ""


def _verdict(summary: Summary) -> str:
    verdict = summary.verdict
    if verdict.is_consistent:
        return (
            "<h2>Reconciliation: no differences</h2><p>For each game and each reason, the tables have exactly what the "
            f"simulators sent. In the whole lakehouse {verdict.records_in_lakehouse:,} records became "
            f"{verdict.rows_in_lakehouse:,} rows and {verdict.dead_letters_in_lakehouse:,} dead letters, "
            f"{verdict.duplicates_in_lakehouse:,} were duplicates, {verdict.quarantined_in_lakehouse:,} broke a rule "
            f"and were quarantined, {verdict.dropped_in_lakehouse:,} dropped, in "
            f"{verdict.batches_in_lakehouse:,} batches; every offset was committed exactly once.</p>"
        )
    items = "".join(f"<li>{escape(problem)}</li>" for problem in verdict.problems[:_SHOWN_PROBLEMS])
    return f"<h2>Reconciliation failed: {len(verdict.problems):,} problems</h2><ul>{items}</ul>"


def _shares(totals: Totals) -> str:
    return (
        f"{totals.rows:,} rows + {totals.dead_letters:,} dead letters + {totals.duplicates:,} duplicates "
        f"+ {totals.quarantined:,} quarantined + {totals.dropped:,} dropped"
    )


def _tiles(summary: Summary) -> str:
    totals, fresh, gateway = summary.totals, summary.freshness, summary.gateway
    tiles = (
        ("records", f"{totals.records:,}", _shares(totals)),
        ("records/s", f"{totals.records_per_second:,.0f}", "from the first event sent to the last one committed"),
        ("records/s, busy", f"{totals.records_per_busy_second:,.0f}", "while a batch was decided or committed"),
        ("acknowledged/s", f"{gateway.acknowledged_per_second:,}", f"by the gateway, p99 {gateway.p99_ms:,.0f} ms"),
        ("freshness p95", f"{fresh.p95_seconds:.1f} s", f"p50 {fresh.p50_seconds:.1f} s{_once_running(summary)}"),
        ("files", f"{totals.files:,}", f"{totals.bytes / 2**20:,.0f} MiB in {len(summary.batches):,} batches"),
        (
            "total time",
            f"{summary.times.finished:.0f} s",
            f"at most {totals.peak_memory_bytes / _GIB:.1f} GiB of memory",
        ),
    )
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd>{escape(detail)}</dd></div>"
        for name, value, detail in tiles
    )


def _gateway(gateway: GatewayFigures) -> str:
    rejected = ((f"rejected: {reason}", f"{count:,} events") for reason, count in gateway.rejected.items())
    rows = (
        ("acknowledged", f"{gateway.acknowledged:,} events, {gateway.acknowledged_per_second:,} a second"),
        ("acknowledged a second time", f"{gateway.duplicates:,} events, one row each"),
        *rejected,
        ("requests", f"{gateway.requests:,}, {gateway.retries:,} of them retries"),
        (
            "request time",
            f"p50 {gateway.p50_ms:,.0f} ms, p99 {gateway.p99_ms:,.0f} ms, longest {gateway.max_ms:,.0f} ms",
        ),
        ("players", f"{gateway.players:,}; in the vault, of all runs, {gateway.players_in_vault:,}"),
        ("scanned for in every row", f"{gateway.personal_texts} personal texts of this run"),
    )
    return page_table(("gateway", ""), rows)


def _game(game: GameFigures) -> tuple[str, ...]:
    return (
        game.game,
        f"{game.rows:,}",
        f"{game.files:,}",
        f"{game.bytes_per_row:.1f}",
        f"{game.freshness.p50_seconds:.1f}",
        f"{game.freshness.p95_seconds:.1f}",
        f"{game.rows_in_table:,}",
    )


def _key_figures(game: GameKeyFigures) -> tuple[str, ...]:
    return (
        game.game,
        f"{game.events:,}",
        f"{game.players:,}",
        f"{game.sessions:,}",
        f"{game.payers:,}",
        f"{game.conversion:.1%}",
        f"{game.bookings:,.2f}",
        f"{game.bookings_per_player:.2f}",
    )
