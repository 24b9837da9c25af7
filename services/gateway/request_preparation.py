"""From the events of one request to records that may be sent: the vault has the players and their personal data."""

from dataclasses import dataclass, replace

from services.gateway.batching import LoopBatcher
from services.gateway.personal.vault_client import PlayerStore, vault_failures_as_unavailable
from services.gateway.preparation import PreparationResult, PreparedBatch, UnknownPlayers
from services.gateway.validation import EventBatch


@dataclass(frozen=True, slots=True)
class RequestPreparer:
    """Prepares the batch of a request together with those of concurrent requests.

    Attributes:
        batcher: prepares batches, of which one is prepared again for as long as it has unknown players.
        players: resolves the players that are not in its cache.
    """

    batcher: LoopBatcher[EventBatch, PreparationResult]
    players: PlayerStore

    async def prepare(self, batch: EventBatch) -> PreparedBatch:
        """Return the batch's records, once the vault has the personal data of its events.

        Raises:
            UnavailableError: the vault does not answer; the same request may be sent again.
        """
        with vault_failures_as_unavailable():
            prepared = await self.batcher.submit(batch, len(batch.raw_events))
            # Each turn resolves a player more, also if the cache evicts others meanwhile.
            while isinstance(prepared, UnknownPlayers):
                resolved = await self.players.resolve(batch.game.name, prepared.names, prepared.personal_data)
                batch = replace(batch, resolved={**batch.resolved, **resolved})
                prepared = await self.batcher.submit(batch, len(batch.raw_events))
            if prepared.personal_data:
                await self.players.store(batch.game.name, prepared.personal_data)
        return prepared
