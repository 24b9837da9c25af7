"""Evaluates a run: its figures, and whether the tables reconcile with the ledgers of sent events."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from gamelake.contract.games import GamesContract, load_games
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.reconciliation import Reconciliation, reconcile
from gamelake.objects.store import Store
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from tools.demo.figures import (
    BatchFigures,
    GameFigures,
    GatewayFigures,
    RunParameters,
    RunVerdict,
    Summary,
    Times,
    Totals,
)
from tools.demo.freshness import Delays, FreshnessPercentiles, delays_of
from tools.demo.key_figures import key_figures
from tools.demo.options import DemoOptions, DemoPaths
from tools.demo.pii_scan import tables_with
from tools.demo.progress import RunClock
from tools.demo.run import Recording
from tools.demo.verification import RunLedgers, allowing_repeats, differences, expected, gained
from tools.embedded.service import CONTRACTS
from tools.simulator.ledger import HttpLedger

LAKEHOUSE = "lakehouse"


def summarise(options: DemoOptions, paths: DemoPaths, seed: int, recording: Recording) -> Summary:
    """Reconcile the tables with the simulators' ledgers, and compute the figures of the run."""
    after = reconcile(Store(paths.lakehouse))
    contract = load_games(CONTRACTS / "games.yaml")
    commits = [(manifest, line.committed_at) for line, manifest in recording.batches]
    delays = delays_of(paths.directory / LAKEHOUSE, commits)
    batches = tuple(_batches(recording))
    ledgers = RunLedgers.read(paths.kafka_ledger, paths.http_ledger)
    gateway = gateway_figures(ledgers.http, paths)
    leaks = tables_with(
        ledgers.http.personal, paths.directory / LAKEHOUSE, [manifest for _, manifest in recording.batches]
    )
    times = _times(recording, delays, batches)
    return Summary(
        asked=_parameters(options, seed, recording.clock),
        verdict=_verdict(
            after,
            (*_differences(ledgers, contract, recording.before, after), *problems_at(gateway), *map(_leak, leaks)),
        ),
        totals=_totals(recording, batches, times),
        times=times,
        gateway=gateway,
        freshness=FreshnessPercentiles.of(delays.all),
        freshness_once_running=FreshnessPercentiles.of(delays.once_running),
        histogram=delays.histogram(),
        games=tuple(_games(recording, contract, delays, after)),
        key_figures=key_figures(paths.lakehouse, [manifest for _, manifest in recording.batches]),
        dead_letters=dict(sorted(_dead_letters(recording).items())),
        broken_rules=dict(sorted(_broken_rules(recording).items())),
        batches=batches,
        samples=recording.samples,
    )


def _parameters(options: DemoOptions, seed: int, clock: RunClock) -> RunParameters:
    return RunParameters(
        events=options.events,
        games=options.games,
        versions=options.versions,
        rate=options.rate,
        seed=seed,
        max_records_per_batch=options.max_records_per_batch,
        started_at=clock.started_at.isoformat(timespec="seconds"),
    )


def _differences(
    ledgers: RunLedgers, contract: GamesContract, before: Reconciliation, after: Reconciliation
) -> Iterator[str]:
    tables = {name: game.table for game in contract.games for name in game.match}
    wanted, found = expected(ledgers, tables), gained(before, after)
    if ledgers.http.unanswered:
        wanted = allowing_repeats(wanted, found)
    return differences(wanted, found)


def _leak(table: str) -> str:
    return f"{table} contains personal data that a game has sent"


def _verdict(after: Reconciliation, problems: tuple[str, ...]) -> RunVerdict:
    return RunVerdict(
        problems=(*after.problems, *problems),
        batches_in_lakehouse=after.batches,
        records_in_lakehouse=after.records,
        rows_in_lakehouse=after.silver_rows,
        dead_letters_in_lakehouse=sum(after.dead_letters.values()),
        duplicates_in_lakehouse=sum(after.duplicates.values()),
        quarantined_in_lakehouse=sum(after.quarantined.values()),
        dropped_in_lakehouse=sum(after.dropped.values()),
    )


def _batches(recording: Recording) -> Iterator[BatchFigures]:
    for line, _ in recording.batches:
        yield BatchFigures(
            batch=line.batch,
            ended=recording.clock.at(line.committed_at),
            records=line.records,
            dead_letters=sum(line.dead_letters.values()),
            tables=line.tables,
            files=line.files,
            bytes=line.bytes,
            decide_seconds=line.decide_seconds,
            commit_seconds=line.commit_seconds,
        )


def _times(recording: Recording, delays: Delays, batches: tuple[BatchFigures, ...]) -> Times:
    return Times(
        services_ready=recording.services_ready,
        simulator_started=recording.simulator_started,
        first_event=round(delays.first_ingest - recording.clock.started_at.timestamp(), 3),
        first_commit=batches[0].ended,
        last_commit=batches[-1].ended,
        finished=recording.clock.now(),
    )


def _totals(recording: Recording, batches: tuple[BatchFigures, ...], times: Times) -> Totals:
    records, dead_letters = sum(batch.records for batch in batches), sum(batch.dead_letters for batch in batches)
    duplicates = sum(sum(line.duplicates.values()) for line, _ in recording.batches)
    busy = sum(batch.decide_seconds + batch.commit_seconds for batch in batches)
    return Totals(
        records=records,
        rows=records - sum(line.without_a_row for line, _ in recording.batches),
        dead_letters=dead_letters,
        duplicates=duplicates,
        quarantined=sum(sum(line.quarantined.values()) for line, _ in recording.batches),
        dropped=sum(sum(line.dropped.values()) for line, _ in recording.batches),
        bytes=sum(batch.bytes for batch in batches),
        files=sum(batch.files for batch in batches),
        records_per_second=round(records / (times.last_commit - times.first_event)),
        records_per_busy_second=round(records / busy),
        peak_memory_bytes=max(sample.memory_bytes for sample in recording.samples),
    )


def _games(
    recording: Recording, contract: GamesContract, delays: Delays, after: Reconciliation
) -> Iterator[GameFigures]:
    added: defaultdict[str, list[TableFiles]] = defaultdict(list)
    for _, manifest in recording.batches:
        for entry in manifest.tables:
            added[entry.table].append(entry)
    rows_in = {table.table: table.rows for table in after.tables}
    for game in contract.games:
        entries = added.get(game.table)
        if entries:
            seconds = [delays.games[name] for name in game.match if name in delays.games]
            yield _game(game.game_name, entries, rows_in[game.table], FreshnessPercentiles.of(np.concatenate(seconds)))


def _game(name: str, entries: list[TableFiles], rows_in_table: int, freshness: FreshnessPercentiles) -> GameFigures:
    rows = sum(entry.rows for entry in entries)
    size = sum(file.size for entry in entries for file in entry.files)
    return GameFigures(
        game=name,
        table=entries[0].table,
        rows=rows,
        files=sum(len(entry.files) for entry in entries),
        bytes=size,
        bytes_per_row=round(size / rows, 1),
        rows_in_table=rows_in_table,
        freshness=freshness,
    )


def _dead_letters(recording: Recording) -> Mapping[str, int]:
    return sum((Counter(line.dead_letters) for line, _ in recording.batches), Counter[str]())


def _broken_rules(recording: Recording) -> Mapping[str, int]:
    broken = Counter[str]()
    for _, manifest in recording.batches:
        for each in manifest.judged.counts:
            broken[each.rule] += each.broken
    return broken


def gateway_figures(ledger: HttpLedger, paths: DemoPaths) -> GatewayFigures:
    """Return the gateway's figures, from the games' ledger and the vault."""
    times = ledger.request_times
    return GatewayFigures(
        acknowledged=ledger.acknowledged,
        acknowledged_per_second=round(ledger.acknowledged / ledger.seconds),
        duplicates=ledger.duplicates,
        rejected=ledger.rejected,
        requests=ledger.requests,
        retries=ledger.retries,
        p50_ms=times.p50_ms,
        p99_ms=times.p99_ms,
        max_ms=times.max_ms,
        players=ledger.players,
        players_in_vault=_players_in_vault(paths),
        personal_texts=len(ledger.personal),
    )


def problems_at(gateway: GatewayFigures) -> Iterator[str]:
    """Yield a message for each inconsistency between vault and gateway."""
    if gateway.players_in_vault < gateway.players:
        yield f"the vault has {gateway.players_in_vault:,} players, events of {gateway.players:,} were acknowledged"


def _players_in_vault(paths: DemoPaths) -> int:
    vault = SqliteVault(paths.vault)
    try:
        return sum(vault.players_by_key().values())
    finally:
        vault.close()
