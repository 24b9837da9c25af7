"""The files of the state outside its table: what each batch changed, and the purchases of the last hour."""

import uuid
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from gamelake.model.errors import StoreError
from gamelake.storage.store import Store

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def encode_table(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def decode_table(encoded: bytes) -> pa.Table:
    """The table that `encode_table` encoded: all columns and rows in their order."""
    with pa.ipc.open_stream(encoded) as reader:
        return reader.read_all()


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """States that a task has changed, and purchases that came."""

    states: bytes
    purchases: bytes


def file_prefix(folder: str, batch_id: int, kind: str, label: str = "driver") -> str:
    """How the name of a file begins that goes with a batch: what it is, and whose."""
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
    """Read files of changes, many at a time: of each, in the order of `paths`, states and purchases.

    Yields:
        Columns of `STATE_SCHEMA` and of `PURCHASES_SCHEMA`.

    Raises:
        StoreError: a file is gone.
    """
    for path, content in zip(paths, store.get_all(paths), strict=True):
        change = msgspec.msgpack.decode(_present(path, content), type=StateChange)
        yield decode_table(change.states), decode_table(change.purchases)


def write_table(store: Store, prefix: str, rows: pa.Table) -> str:
    """Write a table with any columns to a file of a unique name; gives its path."""
    path = f"{prefix}-{uuid.uuid4()}"
    store.put(path, encode_table(rows))
    return path


def read_table(store: Store, path: str) -> pa.Table:
    """Read a file of `write_table`: all columns and rows in their order.

    Raises:
        StoreError: the file is gone.
    """
    return decode_table(_present(path, store.get(path)))


def batch_of(path: str) -> int:
    """The batch that a file goes with."""
    return int(path.rsplit("/", 1)[-1].partition("-")[0])


def _present(path: str, content: bytes | None) -> bytes:
    if content is None:
        raise StoreError(
            f"{path} is gone, which the state of live operations needs: give GAMELAKE_STREAM another name, and it is "
            "made again from what Kafka holds"
        )
    return content
