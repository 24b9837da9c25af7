"""Prepares the events of one request: the records may be sent once the vault has the players and personal data."""

from dataclasses import dataclass, replace

from services.gateway.errors import EventRejection
from services.gateway.events.batching import LoopBatcher
from services.gateway.events.preparation import MAX_ROWS, PreparationResult, PreparedBatch, TooManyRows, UnknownPlayers
from services.gateway.events.validation import EventBatch
from services.gateway.personal.vault_client import PlayerStore, vault_failures_as_unavailable


@dataclass(frozen=True, slots=True)
class RequestPreparer:
    """Prepares the batch of a request together with those of concurrent requests.

    Attributes:
        batcher: prepares the batches of concurrent requests; called again for a batch that has unknown players.
        players: resolves players that are not cached, and stores personal data.
        max_rows: the size of the parts in which a batch is prepared that has to be prepared one by one.
    """

    batcher: LoopBatcher[EventBatch, PreparationResult]
    players: PlayerStore
    max_rows: int = MAX_ROWS

    async def prepare(self, batch: EventBatch) -> PreparedBatch:
        """Return the batch's records, once the vault has the personal data of its events.

        Raises:
            UnavailableError: the vault does not answer; the same request may be sent again.
        """
        with vault_failures_as_unavailable():
            prepared = await self._with_players(batch)
            if prepared.personal_data:
                await self.players.store(batch.game.name, prepared.personal_data)
        return prepared

    async def _with_players(self, batch: EventBatch) -> PreparedBatch:
        prepared = await self.batcher.submit(batch, len(batch.raw_events))
        # Each turn resolves at least one more player, even if the cache evicts others in the meantime.
        while isinstance(prepared, UnknownPlayers):
            resolved = await self.players.resolve(batch.game.name, prepared.names, prepared.personal_data)
            batch = replace(batch, resolved={**batch.resolved, **resolved})
            prepared = await self.batcher.submit(batch, len(batch.raw_events))
        return await self._in_parts(batch) if isinstance(prepared, TooManyRows) else prepared

    async def _in_parts(self, batch: EventBatch) -> PreparedBatch:
        """Prepare a few events at a time: other requests have their turns in between."""
        whole = PreparedBatch([], [], [])
        for start in range(0, len(batch.raw_events), self.max_rows):
            part = replace(batch, raw_events=batch.raw_events[start : start + self.max_rows])
            prepared = await self._with_players(part)
            moved = [EventRejection(each.index + start, each.reason, each.field) for each in prepared.rejections]
            whole = PreparedBatch(
                [*whole.records, *prepared.records],
                [*whole.rejections, *moved],
                [*whole.personal_data, *prepared.personal_data],
            )
        return whole
