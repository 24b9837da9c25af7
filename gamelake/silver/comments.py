"""What the tables of the fan-out mean: by the games contract, and a game's own columns by the messages' sources."""

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from gamelake.contracts.descriptions import TableDescription
from gamelake.contracts.games import GamesContract
from gamelake.lake.comments import Comments
from gamelake.lake.store import Store
from gamelake.naming import SILVER_EVENTS, game_of
from gamelake.silver.events import SPREAD
from gamelake.wire.comments import field_comments
from gamelake.wire.schemas import kept_schemas

# As the contract names the tables of all games.
EACH_GAME = "silver/<game>_events"


@dataclass(frozen=True, slots=True)
class EventComments:
    """What the tables mean, by the contract and the schemas that the lakehouse has kept so far."""

    contract: GamesContract
    store: Store

    def __call__(self, table: str) -> Comments:
        """A table's comments; none of a table that the contract does not describe."""
        described = self.contract.tables.get(table, TableDescription())
        game = game_of(table)
        if game is None:
            return Comments(described.description, described.columns)
        title = next((spec.game_name for spec in self.contract.games if spec.name == game), game)
        of_each = self.contract.tables.get(EACH_GAME, TableDescription())
        common = self.contract.tables.get(SILVER_EVENTS, TableDescription()).columns
        description = described.description or of_each.description.replace("<game>", title)
        return Comments(description, {**self._of_messages(), **common, **of_each.columns, **described.columns})

    def _of_messages(self) -> Mapping[str, str]:
        """A newer schema says it better."""
        columns: dict[str, str] = {}
        for _, content in kept_schemas(self.store):
            columns |= _spread(field_comments(FileDescriptorSet.FromString(content)))
        return columns


def _spread(comments: Mapping[str, str]) -> Mapping[str, str]:
    inner = f"{SPREAD}."
    return {path.removeprefix(inner): comment for path, comment in comments.items()}
