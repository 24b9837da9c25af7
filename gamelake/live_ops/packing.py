"""Tables as bytes, between tasks and in the files of the state."""

import pyarrow as pa

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def pack_table(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def unpack_table(packed: bytes) -> pa.Table:
    """A table as `pack_table` wrote it."""
    with pa.ipc.open_stream(packed) as reader:
        return reader.read_all()
