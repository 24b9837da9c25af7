"""The self-test of a store, on the local file system; tests/stack tries it on a store that lies."""

from pathlib import Path

from gamelake.storage.store import PROBE, Location, Store, require_put_if_absent


def test_a_store_with_conditional_puts_passes_every_self_test(tmp_path: Path) -> None:
    store = Store(Location(uri=f"file://{tmp_path}"))

    require_put_if_absent(store)
    require_put_if_absent(store)

    assert store.paths("") == [PROBE]
