"""What a run says of the gateway: what it acknowledged, how fast, and whom its vault knows."""

from collections.abc import Iterator

from gamelake.vault.sqlite_vault import SqliteVault
from tools.demo.figures import GatewayFigures
from tools.demo.places import Places
from tools.simulator.http_ledger import HttpLedger


def gateway_figures(ledger: HttpLedger, places: Places) -> GatewayFigures:
    """Take the figures from the games' ledger and from the vault."""
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
        players_in_vault=_players_in_vault(places),
        personal_texts=len(ledger.personal),
    )


def problems_at(gateway: GatewayFigures) -> Iterator[str]:
    """A sentence for what can't be."""
    if gateway.players_in_vault < gateway.players:
        yield f"the vault knows {gateway.players_in_vault:,} players, of {gateway.players:,} events were acknowledged"


def _players_in_vault(places: Places) -> int:
    vault = SqliteVault(places.vault)
    try:
        return sum(vault.players_by_key().values())
    finally:
        vault.close()
