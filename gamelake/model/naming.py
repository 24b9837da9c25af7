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
CURRENCY_RATES = "gold/currency_rates"
STORE_SALES = "gold/store_sales"
ACQUISITION_COST = "gold/acquisition_cost"
LINEAGE_EVENTS = "lineage/events"
AUDIT_QUERIES = "audit/queries"
AUDIT_SUPPORT_CALLS = "audit/support_calls"

# Tables in gold's folder that the games contract does not declare: no aggregate can have their names.
NO_AGGREGATES = frozenset(
    {
        QUALITY,
        TABLE_CHECKS,
        VALIDATIONS,
        CURRENCY_RATES,
        STORE_SALES,
        ACQUISITION_COST,
        "gold/live_ops_player_state",
        "gold/live_ops_minutes",
        "gold/live_ops_signals",
        "gold/experiment_exposures",
        "gold/experiment_results",
        "gold/experiment_statistics",
        "gold/segments",
        "gold/kpi_players",
        "gold/kpi_player_sets",
        "gold/kpi_daily",
        "gold/kpi_active_players",
        "gold/kpi_cohorts",
        "gold/kpi_cohorts_by",
    }
)

# The order in which streams that write the same tables decide their batches.
SETTLE_RECORDS = "_gamelake/settled"
# The scheduler's lease, and the record of each of its tasks.
MAINTENANCE_FOLDER = "_gamelake/maintenance"
# An object for each vacuum of a table that has begun, and is not known to have ended.
VACUUM_MARKS = f"{MAINTENANCE_FOLDER}/vacuum_marks"
# One object for each day of a table whose gold is held back.
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
    """The reach of a checkpoint of logs and manifests (`gamelake.delta.log.history_checkpoints`), and its folder."""

    RETENTION = "_gamelake/history"
    DAY = "_gamelake/history/daily"


def game_table(game: str) -> str:
    """Return the path of a game's silver table."""
    return f"silver/{game}_events"


def game_of(table: str) -> str | None:
    """Return the game whose silver table this is, None if it is another kind of table.

    Example:
        >>> game_of("silver/kart_rumble_events"), game_of("silver/events")
        ('kart_rumble', None)
    """
    layer, _, name = table.partition("/")
    return name.removesuffix("_events") if layer == "silver" and name != "events" and name.endswith("_events") else None


def gold_table(game: str, aggregate: str) -> str:
    """Return the path of the gold table of one aggregate of a game."""
    return f"gold/{game}_{aggregate}"


def clone_table(clone: str, table: str) -> str:
    """Return the path of the clone's copy of another table."""
    return f"{Layer.CLONES}/{clone}_{table.rpartition('/')[2]}"


def rules_path(fingerprint: str) -> str:
    """Return the path of the rules of a set that has judged rows."""
    return f"_gamelake/rules/{fingerprint}.json"


def generations_folder(stream: str) -> str:
    """Return the folder of the records of a stream's checkpoint generations."""
    return f"_gamelake/streams/{stream}/generations"


def events_folder(stream: str) -> str:
    """Return the folder of the identities of the events that a stream has written to silver within the dedup window."""
    return f"_gamelake/streams/{stream}/events"


def shuffle_folder(stream: str) -> str:
    """Return the folder of rows on their way from task to task of a batch that a stream decides."""
    return f"_gamelake/streams/{stream}/shuffle"


def state_folder(stream: str) -> str:
    """Return the folder of a stream's state; a stream that writes records to the layers has none."""
    return f"_gamelake/streams/{stream}/state"


def checkpoint_path(stream: str, generation: int) -> str:
    """Return the folder of a generation's Spark checkpoint."""
    return f"_gamelake/streams/{stream}/checkpoints/{generation:06d}"
