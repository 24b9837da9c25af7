"""Uploads of a task's files: all are written, or the task fails soon."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from obstore.exceptions import BaseError

from gamelake.objects.store import Location, Store
from gamelake.streaming.tasks.chunk import Uploads

_CONTENT = pa.py_buffer(b"rows")


def a_store(folder: Path) -> Store:
    """A store with two requests at once, and an object where the folder of one table would be."""
    store = Store(Location(uri=folder.as_uri(), at_once=2))
    store.put("unwritable", b"")
    return store


def put_all(store: Store, paths: Iterable[str]) -> None:
    with Uploads(store) as uploads:
        for path in paths:
            uploads.put(path, _CONTENT)


def test_all_files_are_written_at_the_end_of_the_block(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    names = [f"table/{number:02d}" for number in range(40)]

    put_all(store, names)

    assert store.paths("table") == names
    assert store.get(names[-1]) == b"rows"


def test_after_a_file_that_can_not_be_written_few_others_are_taken(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    left = iter([f"unwritable/{number}" for number in range(40)])

    with pytest.raises(BaseError, match="unwritable"):
        put_all(store, left)

    assert len(list(left)) >= 40 - 2 * store.at_once - 1


def test_the_error_of_the_last_file_is_raised_at_the_end_of_the_block(tmp_path: Path) -> None:
    store = a_store(tmp_path)

    with pytest.raises(BaseError, match="unwritable"):
        put_all(store, ["table/file", "unwritable/file"])
