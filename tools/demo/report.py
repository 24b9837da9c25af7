"""The report of a run as one self-contained HTML page, of the portal's elements, charts and style."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from gamelake.quality.check_findings import Bounds
from services.portal.display import duration
from services.portal.home import Tile
from services.portal.templates import ASSETS, environment
from tools.demo import charts
from tools.demo.figures import GameFigures, GatewayFigures, Summary, Totals
from tools.demo.key_figures import GameKeyFigures
from tools.demo.validation import ExpectationCounts, Failure, Validation

_TEMPLATES = Path(__file__).parent / "templates"
_ALL_GAMES = "all games"
_SHOWN = 50
_GIB = 2**30
_GAME_COLUMNS = ("game", "rows", "files", "bytes/row", "p50", "p95", "rows in table")
_KEY_COLUMNS = ("game", "events", "players", "sessions", "paying players", "conversion", "bookings", "per player")
_STYLE = """
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 32rem), 1fr)); gap: 0 2rem; }
main > header, .verdict, .tiles { grid-column: 1 / -1; }
section { min-width: 0; } .chart { max-width: 36rem; }
"""


def as_page(summary: Summary, validation: Validation | None = None) -> str:
    """Return the page with the figures of a run and the newest validation of its tables."""
    context = {
        # The page is one file, which contains its style.
        "style": Markup((ASSETS / "portal.css").read_text(encoding="utf-8") + _STYLE),  # noqa: S704 # our own files
        "heading": heading(summary),
        "started_at": f"{datetime.fromisoformat(summary.asked.started_at):%d %B %Y, %H:%M}",
        "summary": summary,
        "verdict": summary.verdict,
        "most_problems": _SHOWN,
        "tiles": list(_tiles(summary)),
        "charts": {draw.__name__: draw(summary) for draw in charts.ALL},
        "dead_letters": _counts(summary.dead_letters),
        "broken_rules": _counts(summary.broken_rules),
        "key_columns": _KEY_COLUMNS,
        "key_figures": [_key_figures(game) for game in summary.key_figures.games],
        "validation": validation,
        "gateway": list(_gateway(summary.gateway)),
        "game_columns": _GAME_COLUMNS,
        "games": [_game(game) for game in summary.games],
    }
    if validation is not None:
        context |= {
            "validation_text": _counts_text(validation),
            "expectations": [_expectations(game) for game in validation.games],
            "failures": [_failure(failure) for failure in validation.failures[:_SHOWN]],
        }
    return environment(_TEMPLATES).get_template("report.html").render(context)


def _counts(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Names with their counts, the greatest first."""
    return [(name, f"{count:,}") for name, count in sorted(counts.items(), key=lambda item: -item[1])]


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


def _once_running(summary: Summary) -> str:
    fresh = summary.freshness_once_running
    if not fresh.rows:
        return ""
    return f"; once the job ran p95 {duration(fresh.p95_seconds)}, p50 {duration(fresh.p50_seconds)}"


def _shares(totals: Totals) -> str:
    return (
        f"{totals.rows:,} rows + {totals.dead_letters:,} dead letters + {totals.duplicates:,} duplicates "
        f"+ {totals.quarantined:,} quarantined + {totals.dropped:,} dropped"
    )


def _tiles(summary: Summary) -> Iterator[Tile]:
    totals, fresh, gateway = summary.totals, summary.freshness, summary.gateway
    for name, value, note in (
        ("records", f"{totals.records:,}", _shares(totals)),
        ("records/s", f"{totals.records_per_second:,.0f}", "from the first event sent to the last one committed"),
        ("records/s, busy", f"{totals.records_per_busy_second:,.0f}", "while a batch was decided or committed"),
        ("acknowledged/s", f"{gateway.acknowledged_per_second:,}", f"by the gateway, p99 {gateway.p99_ms:,.0f} ms"),
        ("freshness p95", duration(fresh.p95_seconds), f"p50 {duration(fresh.p50_seconds)}{_once_running(summary)}"),
        ("files", f"{totals.files:,}", f"{totals.bytes / 2**20:,.0f} MiB in {len(summary.batches):,} batches"),
        (
            "total time",
            duration(summary.times.finished),
            f"at most {totals.peak_memory_bytes / _GIB:.1f} GiB of memory",
        ),
    ):
        yield Tile(name=name, value=value, note=note)


def _gateway(gateway: GatewayFigures) -> Iterator[tuple[str, str]]:
    yield "acknowledged", f"{gateway.acknowledged:,} events, {gateway.acknowledged_per_second:,} a second"
    yield "acknowledged a second time", f"{gateway.duplicates:,} events, one row each"
    for reason, count in gateway.rejected.items():
        yield f"rejected: {reason}", f"{count:,} events"
    yield "requests", f"{gateway.requests:,}, {gateway.retries:,} of them retries"
    yield (
        "request time",
        f"p50 {gateway.p50_ms:,.0f} ms, p99 {gateway.p99_ms:,.0f} ms, longest {gateway.max_ms:,.0f} ms",
    )
    yield "players", f"{gateway.players:,}; in the vault, of all runs, {gateway.players_in_vault:,}"
    yield "scanned for in every row", f"{gateway.personal_texts} personal texts of this run"


def _game(game: GameFigures) -> tuple[str, ...]:
    return (
        game.game,
        f"{game.rows:,}",
        f"{game.files:,}",
        f"{game.bytes_per_row:.1f}",
        duration(game.freshness.p50_seconds),
        duration(game.freshness.p95_seconds),
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
        f"${game.bookings:,.2f}",
        f"${game.bookings_per_player:.2f}",
    )
