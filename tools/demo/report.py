"""The report of a run as one self-contained HTML page, of the portal's elements and style."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template

from gamelake.quality.check_findings import Bounds
from services import portal
from services.portal.html import section, state, table
from tools.demo import charts
from tools.demo.figures import GameFigures, GatewayFigures, Summary, Totals
from tools.demo.key_figures import GameKeyFigures
from tools.demo.validation import ExpectationCounts, Failure, Validation

_COLUMNS = ("failed", "of", "severity", "observed", "expected", "ask")
_EXPECTATION_COLUMNS = ("game", "passed", "failed", "skipped")
_ALL_GAMES = "all games"
_SHOWN = 50
_GIB = 2**30
_SHOWN_PROBLEMS = 50
_GAME_COLUMNS = ("game", "rows", "files", "bytes/row", "p50 s", "p95 s", "rows in table")
_KEY_COLUMNS = ("game", "events", "players", "sessions", "paying players", "conversion", "bookings $", "per player $")
_PORTAL_STYLE = Path(str(portal.__file__)).parent / "assets" / "portal.css"
_STYLE = """
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 32rem), 1fr)); gap: 0 2rem; }
header, .verdict, .tiles { grid-column: 1 / -1; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 0.75rem; margin: 0; }
dd { margin: 0; font-size: 0.8rem; } dt + dd { font-size: 1.5rem; font-weight: 650; }
svg { width: 100%; } svg text { fill: var(--text); font-size: 11px; } .grid { stroke: var(--soft); }
rect { fill: var(--link); } polyline { fill: none; stroke: var(--bad); stroke-width: 2; }
circle { fill: transparent; } circle:hover { fill: var(--text); }
"""
_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gamelake demo: $heading</title>
<style>
$style
</style>
</head>
<body>
<main>
<header>
<h1>$heading</h1>
<p>Gamelake demo of $started_at: simulated games, the gateway, Kafka, Spark and one Delta table per game on this
machine.</p>
</header>
<div class="verdict" role="status">$verdict</div>
<dl class="tiles">$tiles</dl>
$sections
</main>
</body>
</html>
""")


def as_page(summary: Summary, validation: Validation | None = None) -> str:
    """Return the page with the figures of a run and the newest validation of its tables."""
    return _PAGE.substitute(
        style=_PORTAL_STYLE.read_text(encoding="utf-8") + _STYLE,
        heading=escape(heading(summary)),
        started_at=f"{datetime.fromisoformat(summary.asked.started_at):%d %B %Y, %H:%M} UTC",
        verdict=_verdict(summary),
        tiles=_tiles(summary),
        sections="\n".join(_sections(summary, validation)),
    )


def _sections(summary: Summary, validation: Validation | None) -> Iterator[str]:
    yield section(
        "throughput",
        "Throughput",
        f"<p>A block for each committed batch, and a line for what Kafka received.</p>{charts.throughput(summary)}",
    )
    yield section("lag", "Lag", f"<p>Records in Kafka that were not in the tables yet.</p>{charts.lag(summary)}")
    yield section(
        "freshness",
        "Freshness",
        "<p>Rows by the seconds from the event's arrival to the commit that made it readable.</p>"
        f"{_burst_note(summary)}{charts.freshness(summary)}",
    )
    yield section(
        "dead-letters",
        "Dead letters and broken rules",
        "<p>A dead letter could not become a row; its bytes are kept. Rules are of any severity; "
        "<code>make quality</code> validates the whole day and its tables.</p>"
        + _text_table("Dead letters", ("reason", "records"), _counts(summary.dead_letters))
        + _text_table("Broken rules", ("rule", "rows"), _counts(summary.broken_rules)),
    )
    yield section(
        "key-figures",
        "KPIs",
        "<p>These KPIs are of the players of this run. In the stack the gold job maintains these figures by day: "
        "<code>gold/kpi_*</code>.</p>"
        + _text_table("KPIs", _KEY_COLUMNS, map(_key_figures, summary.key_figures.games)),
    )
    yield section("expectations", "Great Expectations", as_section(validation))
    yield section(
        "gateway",
        "Gateway",
        "<p>As the games' SDKs measured it; a few producers that are older than the gateway write to Kafka directly, "
        f"and only they make dead letters.</p>{_gateway(summary.gateway)}",
    )
    yield section("games", "Games", _text_table("Games", _GAME_COLUMNS, map(_game, summary.games)))


def _text_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text; the first column has the row headers, the others mostly numbers."""
    return table(caption, columns, ([escape(cell) for cell in row] for row in rows), numbers_from=1)


def _counts(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Names with their counts, the greatest first."""
    return [(name, f"{count:,}") for name, count in sorted(counts.items(), key=lambda item: -item[1])]


def as_section(validation: Validation | None) -> str:
    """Return tables of the expectations by game and of the failed ones; a hint if none were evaluated."""
    if validation is None:
        return "<p><code>make quality</code> validates the newest day and shows its results here.</p>"
    tables = _text_table("Expectations by game", _EXPECTATION_COLUMNS, map(_expectations, validation.games))
    if validation.failures:
        tables += _text_table("Failed expectations", _COLUMNS, map(_failure, validation.failures[:_SHOWN]))
    return f"<p>{_counts_text(validation)}</p>{tables}"


def _expectations(game: ExpectationCounts) -> tuple[str, ...]:
    return (game.game or _ALL_GAMES, f"{game.passed:,}", f"{game.failed:,}", f"{game.skipped:,}")


def _counts_text(validation: Validation) -> str:
    passed = sum(game.passed for game in validation.games)
    skipped = sum(game.skipped for game in validation.games)
    return (
        f"The day {validation.day}, validated on {validation.validated_at:%d %B %Y, %H:%M} UTC: "
        f"{passed:,} expectations passed, {len(validation.failures):,} failed, {skipped:,} were skipped without data."
    )


def _failure(failure: Failure) -> tuple[str, ...]:
    return (
        failure.expectation,
        f"{failure.game or _ALL_GAMES}, {failure.suite}",
        failure.severity,
        f"{failure.observed or 0:,.6g}",
        Bounds(failure.least, failure.most).text,
        failure.owner,
    )


def heading(summary: Summary) -> str:
    """Render the parameters of the run, in one line."""
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
            f"<h2>{state(True, 'Reconciliation: no differences', '')}</h2>"
            "<p>For each game and each reason, the tables have exactly what the simulators sent."
            f" In the whole lakehouse {verdict.records_in_lakehouse:,} records became "
            f"{verdict.rows_in_lakehouse:,} rows and {verdict.dead_letters_in_lakehouse:,} dead letters, "
            f"{verdict.duplicates_in_lakehouse:,} were duplicates, {verdict.quarantined_in_lakehouse:,} broke a rule "
            f"and were quarantined, {verdict.dropped_in_lakehouse:,} dropped, in "
            f"{verdict.batches_in_lakehouse:,} batches; every offset was committed exactly once.</p>"
        )
    items = "".join(f"<li>{escape(problem)}</li>" for problem in verdict.problems[:_SHOWN_PROBLEMS])
    failed = state(False, "", f"Reconciliation failed: {len(verdict.problems):,} problems")
    return f"<h2>{failed}</h2><ul>{items}</ul>"


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
    return _text_table("Gateway", ("gateway", ""), rows)


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
