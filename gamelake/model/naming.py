"""Paths and names inside a lakehouse: tables, layers, and folders of the platform's own objects."""

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
AUDIT_QUERIES = "audit/queries"
AUDIT_SUPPORT_CALLS = "audit/support_calls"

# The order in which streams that write the same tables decide their batches.
SETTLE_RECORDS = "_gamelake/settled"
# An object for each vacuum of a table that has begun, and is not known to have ended.
VACUUM_MARKS = "_gamelake/upkeep/vacuum_marks"
# One object for each game whose gold tables are held.
HOLDS_FOLDER = "_gamelake/holds"


class Layer(StrEnum):
    """A folder of tables; also their SQL schema."""

    BRONZE = "bronze"
    SILVER = "silver"
    DEAD_LETTERS = "dead_letters"
    QUARANTINE = "quarantine"
    GOLD = "gold"
    LINEAGE = "lineage"
    CLONES = "clones"
    AUDIT = "audit"


class Horizon(StrEnum):
    """How far a checkpoint of logs and manifests reaches (`gamelake.storage.manifest_checkpoints`), and its folder.

    The folder keeps its first name: older lakehouses have it.
    """

    RETENTION = "_gamelake/statements"
    DAY = "_gamelake/statements/daily"


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
    """The clone's table that is made of another table."""
    return f"{Layer.CLONES}/{clone}_{table.rpartition('/')[2]}"


def hold_path(game: str) -> str:
    """The hold on a game's gold tables; see `gamelake.storage.holds`."""
    return f"{HOLDS_FOLDER}/{game}.json"


def rules_path(fingerprint: str) -> str:
    """The rules of a set that has judged rows."""
    return f"_gamelake/rules/{fingerprint}.json"


def generation_path(stream: str, generation: int) -> str:
    """The record of a stream's checkpoint generation."""
    return f"_gamelake/streams/{stream}/generations/{generation:06d}.json"


def events_folder(stream: str) -> str:
    """The identities of the events that a stream has written to silver within the dedup window."""
    return f"_gamelake/streams/{stream}/events"


def shuffle_folder(stream: str) -> str:
    """Rows on their way from task to task of a batch that a stream decides."""
    return f"_gamelake/streams/{stream}/shuffle"


def state_folder(stream: str) -> str:
    """The state of a stream; one that writes records to the layers has none."""
    return f"_gamelake/streams/{stream}/state"


def checkpoint_path(stream: str, generation: int) -> str:
    """The folder of a generation's Spark checkpoint."""
    return f"_gamelake/streams/{stream}/checkpoints/{generation:06d}"
