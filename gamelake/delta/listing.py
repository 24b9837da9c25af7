"""The tables and streams of a lakehouse, found by listing its folders."""

from gamelake.delta.log.codec import LOG_FOLDER
from gamelake.model.naming import Layer, game_of
from gamelake.objects.store import Store


def table_paths(store: Store) -> list[str]:
    """List the paths of all tables, sorted: the folders of the layers that have a log.

    Tables of the audit are omitted, since only its own service may change them.
    """
    layers = [layer for layer in Layer if layer is not Layer.AUDIT]
    paths = (folder.rstrip("/") for layer in layers for folder in store.folders(layer))
    return sorted(path for path in paths if has_log(store, path))


def own_tables(store: Store) -> list[str]:
    """List the paths of the tables that the platform itself writes, sorted: all except clones."""
    return [path for path in table_paths(store) if not path.startswith(f"{Layer.CLONES}/")]


def appended_tables(store: Store) -> list[str]:
    """List the paths of the tables that streams append to, sorted: all except clones and gold tables."""
    return [path for path in own_tables(store) if not path.startswith(f"{Layer.GOLD}/")]


def table_names(store: Store) -> frozenset[str]:
    """List the SQL names of all tables, `layer.table`."""
    return frozenset(path.replace("/", ".", 1) for path in table_paths(store))


def stream_names(store: Store) -> list[str]:
    """List the names of all streams, sorted."""
    return [folder.rstrip("/").rsplit("/", 1)[-1] for folder in store.folders("_gamelake/streams")]


def has_log(store: Store, table: str) -> bool:
    """Return True if a folder is a table: if it has a log.

    The table's folder is not listed, because it has a folder for each day. A log without a Delta checkpoint is short.
    """
    log = f"{table}/{LOG_FOLDER}"
    return store.get(f"{log}/_last_checkpoint") is not None or next(store.objects(log), None) is not None


def games_of(store: Store) -> list[str]:
    """List the games that have a silver table, in the order of its path, even if the contract does not name them."""
    games = (game_of(folder.rstrip("/")) for folder in store.folders(Layer.SILVER))
    return [game for game in games if game is not None]
