"""The self-test of a store, on the local file system; tests/stack tries it on a store that lies."""

from pathlib import Path

import pytest

from gamelake.model.errors import StoreUnavailableError
from gamelake.objects.store import PROBE, Location, Store, require_put_if_absent


def test_a_store_with_conditional_puts_passes_every_self_test(tmp_path: Path) -> None:
    store = Store(Location(uri=f"file://{tmp_path}"))

    require_put_if_absent(store)
    require_put_if_absent(store)

    assert store.paths("") == [PROBE]


def test_a_store_that_takes_no_write_is_unavailable_with_a_remedy(tmp_path: Path) -> None:
    store = Store(Location(uri=f"file://{tmp_path}/lakehouse"))
    (tmp_path / "lakehouse").rmdir()
    (tmp_path / "lakehouse").write_bytes(b"a file where the folder was")

    with pytest.raises(StoreUnavailableError, match=r"takes no write.* If it is full, free space"):
        require_put_if_absent(store)
