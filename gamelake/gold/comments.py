"""What a gold table and its columns mean, by the contract."""

from gamelake.contracts.aggregates import AggregateSpec
from gamelake.contracts.games import GamesContract
from gamelake.lake.comments import Comments
from gamelake.naming import SILVER_EVENTS


def aggregate_comments(contract: GamesContract, spec: AggregateSpec, game: str) -> Comments:
    """The comments of a game's table of an aggregate; what it is grouped by means what it means in silver."""
    title = next((each.game_name for each in contract.games if each.name == game), game)
    in_silver = {
        column: meaning
        for table in (SILVER_EVENTS, spec.source(game))
        if table in contract.tables
        for column, meaning in contract.tables[table].columns.items()
        if column in spec.group_by
    }
    return Comments(spec.description.replace("<game>", title), {**in_silver, **spec.descriptions})
