"""A table's data files as an Arrow dataset: queries read only the columns and rows that they need."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from gamelake.delta.log.codec import FileEntry, object_path
from gamelake.objects.store import Location, Store

# A file of this size arrives in a few milliseconds. Each further request for a part of it would cost a round trip.
_WHOLE_BYTES = 256 * 1024


class _KnownFiles(DeltaStorageHandler):
    """Files of an object store with known sizes, which save requests; small files are read with one request."""

    def __init__(self, location: Location, sizes: Mapping[str, int]) -> None:
        super().__init__(location.uri, dict(location.options), dict(sizes))
        self._small = frozenset(path for path, size in sizes.items() if size <= _WHOLE_BYTES)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file for reads at any position."""
        opened = super().open_input_file(path)
        return pa.BufferReader(opened.read()) if path in self._small else opened


def dataset(location: Location, table: str, schema: pa.Schema, files: Iterable[FileEntry]) -> ds.Dataset:
    """Open files of a table as a dataset; nothing is read yet.

    Args:
        location: of the lakehouse.
        table: its path.
        schema: the table's columns in Delta types (`gamelake.delta.columns`), partition columns among them.
        files: the files to read, in any order.

    Returns:
        A dataset with the columns of `schema`: null where a file lacks a column, and the log's values in partition
        columns. A later read raises FileNotFoundError if a file has been deleted.

    Raises:
        StoreError: a file is in no folder of this lakehouse.

    Example:
        >>> from deltalake import write_deltalake
        >>> write_deltalake(location.child("silver/notes"), pa.table({"text": ["first", "second"]}))
        >>> from gamelake.delta.log.codec import live_files
        >>> from gamelake.delta.tables import open_table
        >>> files = live_files(open_table(location, "silver/notes"))
        >>> dataset(location, "silver/notes", pa.schema({"text": pa.string()}), files).count_rows()
        2
    """
    placed = [(object_path(location, table, file.relative_path), file) for file in files]
    system, form = file_system(location, {path: file.size for path, file in placed}), ds.ParquetFileFormat()
    fragments = [form.make_fragment(path, system, _partition(file, schema)) for path, file in placed]
    return ds.FileSystemDataset(fragments, schema, form, system)


def missing_files(store: Store, table: str, files: Sequence[FileEntry]) -> list[FileEntry]:
    """Return those of the files of a table that have been deleted; call this before DuckDB reads them.

    DuckDB waits for Arrow while it holds Python's global lock. The file system of an object store is written in Python
    and needs that lock to report a missing file: the query would hang.
    """
    paths = {object_path(store.location, table, file.relative_path): file for file in files}
    return [paths[path] for path in store.missing(list(paths))]


def file_system(location: Location, sizes: Mapping[str, int]) -> fs.FileSystem:
    """Open the lakehouse as an Arrow file system; its root is the location, since clones name files of other tables.

    Args:
        location: of the lakehouse.
        sizes: the sizes in bytes of the files to read, by their path inside the location.
    """
    parts = urlsplit(location.uri)
    if parts.scheme == "file":
        return fs.SubTreeFileSystem(str(Path(unquote(parts.path))), fs.LocalFileSystem())
    return fs.PyFileSystem(_KnownFiles(location, sizes))


def _partition(file: FileEntry, schema: pa.Schema) -> pc.Expression:
    expression = ds.scalar(True)
    for name, value in file.partition.items():
        column = ds.field(name)
        if value is None:
            expression = expression & column.is_null()
        else:
            expression = expression & (column == pa.scalar(value).cast(schema.field(name).type))
    return expression
