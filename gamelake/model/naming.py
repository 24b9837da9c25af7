"""Where everything stands inside a lakehouse."""

from enum import StrEnum

BRONZE_EVENTS = "bronze/events"
BRONZE_FILES = "bronze/files"
SILVER_EVENTS = "silver/events"
DEAD_LETTERS = "dead_letters/events"
REPLAYED = "dead_letters/replayed"
QUARANTINE = "quarantine/events"
RELEASED = "quarantine/replayed"
GOLD = "gold"
QUALITY = "gold/quality"
TABLE_CHECKS = "gold/table_checks"
VALIDATIONS = "gold/validations"
LINEAGE_EVENTS = "lineage/events"


# Held by a stream that settles a batch while another stream writes the same tables.
SETTLING_LEASE = "_gamelake/leases/settling"
# One object for each game whose gold is held back.
HOLDS_FOLDER = "_gamelake/holds"


class Layer(StrEnum):
    """A folder of the lakehouse that holds tables; also the schema that SQL knows them by."""

    BRONZE = "bronze"
    SILVER = "silver"
    DEAD_LETTERS = "dead_letters"
    QUARANTINE = "quarantine"
    GOLD = "gold"
    LINEAGE = "lineage"
    CLONES = "clones"


def game_table(game: str) -> str:
    """The silver table of a game."""
    return f"silver/{game}_events"


def game_of(table: str) -> str | None:
    """The game whose silver table this is, None if it is another kind of table."""
    layer, _, name = table.partition("/")
    return name.removesuffix("_events") if layer == "silver" and name != "events" and name.endswith("_events") else None


def gold_table(game: str, aggregate: str) -> str:
    """The gold table of one aggregate of a game."""
    return f"gold/{game}_{aggregate}"


def clone_table(clone: str, table: str) -> str:
    """The table of a clone that is made of another one."""
    return f"{Layer.CLONES}/{clone}_{table.rpartition('/')[2]}"


def hold_path(game: str) -> str:
    """By whom and why a game's gold tables are held back."""
    return f"{HOLDS_FOLDER}/{game}.json"


def rules_path(fingerprint: str) -> str:
    """What a set of rules said that has judged rows."""
    return f"_gamelake/rules/{fingerprint}.json"


def generation_path(stream: str, generation: int) -> str:
    """The record of a stream's checkpoint generation."""
    return f"_gamelake/streams/{stream}/generations/{generation:06d}.json"


def events_folder(stream: str) -> str:
    """Where a stream keeps which events silver has taken of late."""
    return f"_gamelake/streams/{stream}/events"


def state_folder(stream: str) -> str:
    """Where a stream that keeps a state has the files of it; one that writes records into the layers has none."""
    return f"_gamelake/streams/{stream}/state"


def checkpoint_path(stream: str, generation: int) -> str:
    """The folder that Spark keeps a generation's checkpoint in."""
    return f"_gamelake/streams/{stream}/checkpoints/{generation:06d}"
