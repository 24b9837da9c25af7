"""A table's data files as an Arrow dataset: queries read only the columns and rows that they need."""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from gamelake.storage.delta_log import FileEntry, object_path
from gamelake.storage.store import Location


def dataset(location: Location, table: str, schema: pa.Schema, files: Iterable[FileEntry]) -> ds.Dataset:
    """Files of a table as a dataset with the table's columns, partition columns among them.

    Raises:
        FileNotFoundError: a file is gone; when it is read, not here.
    """
    system, form = file_system(location), ds.ParquetFileFormat()
    fragments = [
        form.make_fragment(object_path(location, table, file.relative_path), system, _partition(file, schema))
        for file in files
    ]
    return ds.FileSystemDataset(fragments, schema, form, system)


def file_system(location: Location) -> fs.FileSystem:
    """The whole lakehouse as an Arrow file system: a clone names files in the folders of other tables."""
    parts = urlsplit(location.uri)
    if parts.scheme == "file":
        return fs.SubTreeFileSystem(str(Path(unquote(parts.path))), fs.LocalFileSystem())
    return fs.PyFileSystem(DeltaStorageHandler(location.uri, dict(location.options)))


def _partition(file: FileEntry, schema: pa.Schema) -> pc.Expression:
    expression = ds.scalar(True)
    for name, value in file.partition.items():
        column = ds.field(name)
        if value is None:
            expression = expression & column.is_null()
        else:
            expression = expression & (column == pa.scalar(value).cast(schema.field(name).type))
    return expression
