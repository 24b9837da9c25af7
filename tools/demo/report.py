"""The run as one page that needs nothing else: style and pictures are in it."""

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
from tools.demo.plot import Bar, bar_list
from tools.demo.validation import Failure, GameTally, Validation


def page_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names what the others say of it."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_COLUMNS = ("failed", "of", "severity", "observed", "expected", "ask")
_ALL_GAMES = "all games"
_SHOWN = 50


def as_section(validation: Validation | None) -> str:
    """Expectations by game as a picture, and each that failed; how to have them judged where nobody has yet."""
    if validation is None:
        return "<p><code>make quality</code> judges the newest day, and shows here what it found.</p>"
    told = f"<p>{_said(validation)}</p>{_key()}{ET.tostring(expectations(validation), encoding='unicode')}"
    if not validation.failures:
        return told
    return told + page_table(_COLUMNS, map(_failure, validation.failures[:_SHOWN]))


def expectations(validation: Validation) -> ET.Element:
    """How many expectations on each game passed, and how many failed."""
    return bar_list("Expectations by game", [_bar(game) for game in validation.games])


def _said(validation: Validation) -> str:
    passed = sum(game.passed for game in validation.games)
    skipped = sum(game.skipped for game in validation.games)
    return (
        f"The day {validation.day}, judged on {validation.validated_at:%d %B %Y, %H:%M} UTC: "
        f"{passed:,} expectations passed, {len(validation.failures):,} failed, {skipped:,} had nothing to judge."
    )


def _key() -> str:
    return (
        '<p><i class="key a"></i><span>passed</span> <i class="key b"></i><span>failed</span>; those with nothing to '
        "judge are left out</p>"
    )


def _bar(game: GameTally) -> Bar:
    name = game.game or _ALL_GAMES
    title = f"{name}: {game.passed} passed, {game.failed} failed, {game.skipped} had nothing to judge"
    return Bar(name, game.passed + game.failed, title, rest=game.failed)


def _failure(failure: Failure) -> tuple[str, ...]:
    return (
        failure.expectation,
        f"{failure.game or _ALL_GAMES}, {failure.suite}",
        failure.severity,
        f"{failure.observed or 0:,.6g}",
        Bounds(failure.least, failure.most).told,
        failure.owner,
    )


_TEMPLATE = Path(__file__).with_name("report.html.template")
_GIB = 2**30
_SHOWN_PROBLEMS = 50


def as_page(summary: Summary, validation: Validation | None = None) -> str:
    """Fill the template with a run's figures, and with what was found in the tables since."""
    drawn = {draw.__name__: ET.tostring(draw(summary), encoding="unicode") for draw in charts.ALL}
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        drawn,
        heading=escape(heading(summary)),
        started_at=f"{datetime.fromisoformat(summary.asked.started_at):%d %B %Y, %H:%M} UTC",
        verdict_class="good" if summary.verdict.adds_up else "bad",
        verdict=_verdict(summary),
        tiles=_tiles(summary),
        burst_note=_burst_note(summary),
        gateway=_gateway(summary.gateway),
        validation=as_section(validation),
        games=page_table(_GAME_COLUMNS, map(_game, summary.games)),
        key_figures=page_table(_KEY_COLUMNS, map(_key_figures, summary.key_figures.games)),
    )


def heading(summary: Summary) -> str:
    """What was asked for, in one line."""
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
    if verdict.adds_up:
        return (
            "<h2>Everything adds up</h2><p>The tables hold just what the simulator sent, game by game and reason by "
            f"reason. In the whole lakehouse {verdict.records_in_lakehouse:,} records became "
            f"{verdict.rows_in_lakehouse:,} rows and {verdict.dead_letters_in_lakehouse:,} dead letters, "
            f"{verdict.duplicates_in_lakehouse:,} were duplicates, {verdict.quarantined_in_lakehouse:,} broke a rule "
            f"and were quarantined, {verdict.dropped_in_lakehouse:,} dropped, in "
            f"{verdict.batches_in_lakehouse:,} batches, and every offset was taken once.</p>"
        )
    items = "".join(f"<li>{escape(problem)}</li>" for problem in verdict.problems[:_SHOWN_PROBLEMS])
    return f"<h2>The books do not balance: {len(verdict.problems):,} problems</h2><ul>{items}</ul>"


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
        ("in all", f"{summary.times.finished:.0f} s", f"at most {totals.peak_memory_bytes / _GIB:.1f} GiB of memory"),
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
        ("requests", f"{gateway.requests:,}, {gateway.retries:,} of them again"),
        (
            "request time",
            f"p50 {gateway.p50_ms:,.0f} ms, p99 {gateway.p99_ms:,.0f} ms, longest {gateway.max_ms:,.0f} ms",
        ),
        ("players", f"{gateway.players:,}; in the vault, of all runs, {gateway.players_in_vault:,}"),
        ("looked for in every row", f"{gateway.personal_texts} texts about people of this run"),
    )
    return page_table(("gateway", ""), rows)


_GAME_COLUMNS = ("game", "rows", "files", "bytes/row", "p50 s", "p95 s", "rows in table")


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


_KEY_COLUMNS = ("game", "events", "players", "sessions", "paying players", "conversion", "bookings $", "per player $")


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
