"""A store is trusted only if it refuses to create what is there."""

import pytest

from gamelake.model.errors import StoreError
from gamelake.objects.store import PROBE, Store, require_put_if_absent
from tests.stack.lying_store import lying_store
from tests.stack.object_store import ObjectStore

pytestmark = pytest.mark.object_store


def test_the_object_store_is_trusted_as_often_as_it_is_asked(object_store: ObjectStore, bucket: str) -> None:
    store = Store(object_store.location(f"s3://{bucket}/lake"))

    require_put_if_absent(store)
    require_put_if_absent(store)

    assert store.paths("") == [PROBE]


def test_a_store_that_ignores_the_condition_is_refused_by_name_with_the_remedy() -> None:
    with lying_store() as endpoint:
        store = Store(ObjectStore(endpoint, "key", "not a secret").location("s3://bucket/lake"))

        with pytest.raises(StoreError, match=r"the store of s3://bucket/lake .* If-None-Match.* Use a store with"):
            require_put_if_absent(store)


def test_keys_without_rights_are_distinguished_from_a_store_that_breaks_the_contract(
    object_store: ObjectStore, bucket: str
) -> None:
    other_client = object_store.as_user("unknown", "not a secret")

    with pytest.raises(StoreError, match=r"may not be read or written with these keys"):
        require_put_if_absent(Store(other_client.location(f"s3://{bucket}/lake")))
