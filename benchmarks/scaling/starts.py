"""Measures how long a start takes to find its newest batches among many: `python -m benchmarks.scaling.starts`.

The store is the stack's, or the one that the tests' variables name (`tests/stack/object_store.py`); a proxy makes it
far (`tests/stack/latency_proxy.py`). A start asks for the last manifest three times, and for the newest twenty once.
Before, it listed all manifests for each of these, of which one is measured.
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gamelake.storage.manifests import BatchManifest, Manifests
from gamelake.storage.store import Store
from tests.stack.latency_proxy import FarStore, far_store
from tests.stack.object_store import ObjectStore
from tests.stack.rows import a_manifest

_STREAM = "stream"


def fill(store: Store, manifests: int) -> None:
    """Write the manifests of so many batches."""
    template = Manifests(store, _STREAM)
    template.settle(a_manifest(0, "query"))
    folder = f"_gamelake/streams/{_STREAM}/manifests"
    content = store.get(f"{folder}/{0:012d}.json.zst") or b""
    with ThreadPoolExecutor(store.at_once) as pool:
        names = (f"{folder}/{batch_id:012d}.json.zst" for batch_id in range(1, manifests))
        list(pool.map(lambda path: store.put(path, content), names))


def start(store: Store) -> list[BatchManifest]:
    """What a start reads of the manifests."""
    manifests = Manifests(store, _STREAM)
    for _ in range(3):
        manifests.last(1)
    return manifests.last(20)


def measured(far: FarStore, action: Callable[[], object]) -> str:
    """Seconds and requests of an action."""
    far.count_anew()
    started = time.perf_counter()
    action()
    return f"{time.perf_counter() - started:.2f} s, {far.requests}"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifests", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    arguments = parser.parse_args()
    store = ObjectStore.of_the_tests()
    print("| manifests | a start: seconds, requests | one listing of all: seconds, requests |\n| --- | --- | --- |")
    with far_store(store.endpoint) as far:
        for count in arguments.manifests:
            with store.new_bucket() as bucket:
                fill(Store(store.location(f"s3://{bucket}")), count)
                distant = Store(store.at(far.url).location(f"s3://{bucket}"))
                found = measured(far, lambda: start(distant))  # noqa: B023 # called at once
                listed = measured(far, Manifests(distant, _STREAM).batches)
            print(f"| {count:,} | {found} | {listed} |", flush=True)


if __name__ == "__main__":
    main()
