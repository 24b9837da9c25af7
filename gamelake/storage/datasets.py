"""A table's data files as an Arrow dataset: queries read only the columns and rows that they need."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from gamelake.storage.delta_log import FileEntry, object_path
from gamelake.storage.store import Location

# Such a file arrives in a few milliseconds; each further request for a part of it would take as long as the distance.
_WHOLE_BYTES = 256 * 1024


class _KnownFiles(DeltaStorageHandler):
    """Files of an object store, whose sizes are known and need no request; small ones are read as a whole, by one."""

    def __init__(self, location: Location, sizes: Mapping[str, int]) -> None:
        super().__init__(location.uri, dict(location.options), dict(sizes))
        self._small = frozenset(path for path, size in sizes.items() if size <= _WHOLE_BYTES)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A file for reading at any position."""
        opened = super().open_input_file(path)
        return pa.BufferReader(opened.read()) if path in self._small else opened


def dataset(location: Location, table: str, schema: pa.Schema, files: Iterable[FileEntry]) -> ds.Dataset:
    """Files of a table as a dataset with the table's columns, partition columns among them.

    Raises:
        FileNotFoundError: a file is gone; when it is read, not here.
    """
    placed = [(object_path(location, table, file.relative_path), file) for file in files]
    system, form = file_system(location, {path: file.size for path, file in placed}), ds.ParquetFileFormat()
    fragments = [form.make_fragment(path, system, _partition(file, schema)) for path, file in placed]
    return ds.FileSystemDataset(fragments, schema, form, system)


def file_system(location: Location, sizes: Mapping[str, int]) -> fs.FileSystem:
    """The whole lakehouse as an Arrow file system: a clone names files in the folders of other tables.

    Args:
        location: of the lakehouse.
        sizes: of the files that are to be read, in bytes, by path.
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
