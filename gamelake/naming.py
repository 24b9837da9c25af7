"""Where everything stands inside a lakehouse."""

BRONZE_EVENTS = "bronze/events"
SILVER_EVENTS = "silver/events"
DEAD_LETTERS = "dead_letters/events"


def game_table(game: str) -> str:
    """The silver table of a game."""
    return f"silver/{game}_events"


def game_of(table: str) -> str | None:
    """The game whose silver table this is, None if it is another kind of table."""
    layer, _, name = table.partition("/")
    return name.removesuffix("_events") if layer == "silver" and name != "events" and name.endswith("_events") else None


def generation_path(stream: str, generation: int) -> str:
    """The record of a stream's checkpoint generation."""
    return f"_gamelake/streams/{stream}/generations/{generation:06d}.json"


def checkpoint_path(stream: str, generation: int) -> str:
    """The folder that Spark keeps a generation's checkpoint in."""
    return f"_gamelake/streams/{stream}/checkpoints/{generation:06d}"
