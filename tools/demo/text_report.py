"""The figures of a run as text for the terminal."""

from collections.abc import Iterator

from tools.demo.figures import GatewayFigures, Summary

_GIB = 2**30


def as_text(summary: Summary) -> str:
    """Render a table of the games, the dead letters, the totals, and the result of the reconciliation."""
    return "\n".join([*_games(summary), "", *_dead_letters(summary), *_run(summary), "", *_verdict(summary)])


def _games(summary: Summary) -> Iterator[str]:
    yield f"{'game':<24}{'rows':>12}{'files':>8}{'bytes/row':>11}{'p50 s':>8}{'p95 s':>8}{'rows in table':>16}"
    for game in summary.games:
        yield (
            f"{game.game:<24}{game.rows:>12,}{game.files:>8,}{game.bytes_per_row:>11.1f}"
            f"{game.freshness.p50_seconds:>8.1f}{game.freshness.p95_seconds:>8.1f}{game.rows_in_table:>16,}"
        )


def _dead_letters(summary: Summary) -> Iterator[str]:
    for reason, count in summary.dead_letters.items():
        yield f"{'dead letters: ' + reason:<36}{count:>12,}"


def _run(summary: Summary) -> Iterator[str]:
    totals, times, fresh = summary.totals, summary.times, summary.freshness
    yield (
        f"{totals.records:,} records in {len(summary.batches)} batches = {totals.rows:,} rows "
        f"+ {totals.dead_letters:,} dead letters + {totals.duplicates:,} duplicates "
        f"+ {totals.quarantined:,} quarantined + {totals.dropped:,} dropped"
    )
    yield (
        f"{totals.records_per_second:,} records/s from the first event sent to the last one committed, "
        f"{totals.records_per_busy_second:,} while batches ran"
    )
    yield f"freshness p50 {fresh.p50_seconds:.1f} s, p95 {fresh.p95_seconds:.1f} s"
    running = summary.freshness_once_running
    if running.rows:
        yield (
            f"freshness p50 {running.p50_seconds:.1f} s, p95 {running.p95_seconds:.1f} s "
            f"of the {running.rows:,} rows that arrived after the first commit"
        )
    yield from _gateway(summary.gateway)
    yield f"{times.finished:.0f} s in total, at most {totals.peak_memory_bytes / _GIB:.1f} GiB of memory"


def _gateway(gateway: GatewayFigures) -> Iterator[str]:
    rejected = ", ".join(f"{count:,} {reason}" for reason, count in gateway.rejected.items()) or "none"
    yield (
        f"gateway: {gateway.acknowledged:,} events acknowledged, {gateway.acknowledged_per_second:,}/s; "
        f"rejected: {rejected}; {gateway.duplicates:,} duplicates"
    )
    yield (
        f"gateway: {gateway.requests:,} requests, p50 {gateway.p50_ms:.0f} ms, p99 {gateway.p99_ms:.0f} ms, "
        f"{gateway.retries:,} of them retries"
    )
    yield (
        f"{gateway.players_in_vault:,} players in the vault; every row of this run was scanned for "
        f"{gateway.personal_texts} personal texts"
    )


def _verdict(summary: Summary) -> Iterator[str]:
    verdict = summary.verdict
    for problem in verdict.problems:
        yield f"PROBLEM {problem}"
    if verdict.is_consistent:
        yield (
            "Reconciliation: no differences; the tables have exactly what was sent, every offset committed once "
            f"({verdict.records_in_lakehouse:,} records in the lakehouse = {verdict.rows_in_lakehouse:,} rows "
            f"+ {verdict.dead_letters_in_lakehouse:,} dead letters "
            f"+ {verdict.duplicates_in_lakehouse:,} duplicates "
            f"+ {verdict.quarantined_in_lakehouse:,} quarantined + {verdict.dropped_in_lakehouse:,} dropped)."
        )
    else:
        yield f"Reconciliation failed: {len(verdict.problems)} problems."
