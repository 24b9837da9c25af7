"""The files of the state outside its table: the changes of each batch, and the purchases of the last hour."""

import uuid
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from gamelake.model.errors import StoreError
from gamelake.objects.store import Store

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def encode_table(table: pa.Table) -> bytes:
    """Encode a table with any columns as bytes: a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def decode_table(encoded: bytes) -> pa.Table:
    """Decode the bytes of `encode_table`: all columns and rows in the same order."""
    with pa.ipc.open_stream(encoded) as reader:
        return reader.read_all()


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a task, as encoded tables.

    Attributes:
        states: the changed states, columns of `STATE_SCHEMA`.
        purchases: the new purchases, columns of `PURCHASES_SCHEMA`.
    """

    states: bytes
    purchases: bytes


def file_prefix(folder: str, batch_id: int, kind: str, label: str = "driver") -> str:
    """Return the beginning of the path of a batch's file.

    Args:
        folder: the folder of the stream's state files.
        batch_id: the batch.
        kind: "change", "segment" or "carried".
        label: the share, or the driver.
    """
    return f"{folder}/{batch_id:012d}-{kind}-{label}"


def write_change(store: Store, prefix: str, states: pa.Table, purchases: pa.Table) -> str:
    """Write the changes of a task to a file of a unique name.

    Args:
        store: the lakehouse.
        prefix: of the file's path; see `file_prefix`.
        states: columns of `STATE_SCHEMA`, one row for each changed player.
        purchases: columns of `PURCHASES_SCHEMA`, one row for each new purchase.

    Returns:
        The file's path.
    """
    path = f"{prefix}-{uuid.uuid4()}"
    store.put(path, msgspec.msgpack.encode(StateChange(states=encode_table(states), purchases=encode_table(purchases))))
    return path


def read_changes(store: Store, paths: Sequence[str]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Read files of changes, many at a time.

    Yields:
        For each of `paths`, in order: the changed states (columns of `STATE_SCHEMA`) and the new purchases (columns of
        `PURCHASES_SCHEMA`).

    Raises:
        StoreError: a file is gone.
    """
    for path, content in zip(paths, store.get_all(paths), strict=True):
        change = msgspec.msgpack.decode(_present(path, content), type=StateChange)
        yield decode_table(change.states), decode_table(change.purchases)


def write_table(store: Store, prefix: str, rows: pa.Table) -> str:
    """Write a table with any columns to a file of a unique name, and return the file's path."""
    path = f"{prefix}-{uuid.uuid4()}"
    store.put(path, encode_table(rows))
    return path


def read_table(store: Store, path: str) -> pa.Table:
    """Read a file of `write_table`: all columns and rows in the same order.

    Raises:
        StoreError: the file is gone.
    """
    return decode_table(_present(path, store.get(path)))


def batch_of(path: str) -> int:
    """Return the batch of a file, from its path."""
    return int(path.rsplit("/", 1)[-1].partition("-")[0])


def _present(path: str, content: bytes | None) -> bytes:
    if content is None:
        raise StoreError(
            f"{path} is gone, but the state of live operations needs it: restore it, or give GAMELAKE_STREAM another "
            "name to rebuild the state from Kafka's records"
        )
    return content
