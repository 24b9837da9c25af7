"""Prepares the events of one request: the records may be sent once the vault has the players and personal data."""

from dataclasses import dataclass, replace

from services.gateway.batching import LoopBatcher
from services.gateway.personal.vault_client import PlayerStore, vault_failures_as_unavailable
from services.gateway.preparation import PreparationResult, PreparedBatch, UnknownPlayers
from services.gateway.validation import EventBatch


@dataclass(frozen=True, slots=True)
class RequestPreparer:
    """Prepares the batch of a request together with those of concurrent requests.

    Attributes:
        batcher: prepares the batches of concurrent requests; called again for a batch that has unknown players.
        players: resolves players that are not cached, and stores personal data.
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
            # Each turn resolves at least one more player, even if the cache evicts others in the meantime.
            while isinstance(prepared, UnknownPlayers):
                resolved = await self.players.resolve(batch.game.name, prepared.names, prepared.personal_data)
                batch = replace(batch, resolved={**batch.resolved, **resolved})
                prepared = await self.batcher.submit(batch, len(batch.raw_events))
            if prepared.personal_data:
                await self.players.store(batch.game.name, prepared.personal_data)
        return prepared
