"""Each service's key to the object store opens what the service needs, and nothing else."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Set
from io import BytesIO
from types import MappingProxyType

import pytest
from minio import Minio
from minio.error import MinioAdminException, S3Error

from gamelake.objects.store import shared_credentials
from tests.stack.object_store import ObjectStore
from tests.stack.platform import SECRETS, Stack

TABLES = frozenset({"lakehouse/bronze", "lakehouse/silver", "lakehouse/dead_letters", "lakehouse/gold"})
STREAMS, CATALOG_STATE = "lakehouse/_gamelake/streams", "lakehouse/_gamelake/catalog"
LIVE_OPS = "lakehouse/_gamelake/streams/live_ops"
SILVER, GOLD, LINEAGE = "lakehouse/silver", "lakehouse/gold", "lakehouse/lineage"
METASTORE, AUDIT, AUDIT_ROWS = "catalog/silver", "lakehouse/audit", "lakehouse/audit/queries/audit_date=2026-01-01"
INCOMING, DELIVERED = "landing/incoming", "landing/delivered"
STATES = frozenset({STREAMS, CATALOG_STATE, LIVE_OPS})
LAKEHOUSE = TABLES | STATES | {LINEAGE}
PLACES = LAKEHOUSE | {METASTORE, AUDIT, AUDIT_ROWS, INCOMING, DELIVERED}

ACTIONS: Mapping[str, Callable[[Minio, str, str], object]] = MappingProxyType(
    {
        "read": lambda client, bucket, name: client.stat_object(bucket, name),
        "put": lambda client, bucket, name: client.put_object(bucket, name, BytesIO(b"x"), 1),
        "delete": lambda client, bucket, name: client.remove_object(bucket, name),
    }
)
RIGHTS: tuple[tuple[str, Mapping[str, Set[str]]], ...] = (
    ("ingest-events", {"read": LAKEHOUSE | {INCOMING, DELIVERED}, "put": LAKEHOUSE, "delete": STATES}),
    ("serving", {"read": {SILVER, GOLD, LINEAGE, LIVE_OPS}, "put": {GOLD, LINEAGE, LIVE_OPS}, "delete": {LIVE_OPS}}),
    ("maintenance", {"read": LAKEHOUSE, "put": TABLES | {LINEAGE}, "delete": TABLES | {LINEAGE}}),
    ("privacy", {"read": LAKEHOUSE | {AUDIT, AUDIT_ROWS}, "put": LAKEHOUSE, "delete": LAKEHOUSE}),
    ("delivery", {"read": frozenset(), "put": {DELIVERED}, "delete": frozenset()}),
    ("uploads", {"read": frozenset(), "put": {INCOMING}, "delete": frozenset()}),
    ("trino", {"read": LAKEHOUSE | {METASTORE, AUDIT, AUDIT_ROWS}, "put": {METASTORE}, "delete": {METASTORE}}),
    ("catalog", {"read": LAKEHOUSE | {METASTORE, AUDIT}, "put": {CATALOG_STATE}, "delete": {CATALOG_STATE}}),
    ("audit", {action: {AUDIT, AUDIT_ROWS} for action in ACTIONS}),
)


@pytest.fixture
def store_of(stack: Stack) -> Callable[[str], ObjectStore]:
    """The stack's object store as one of its services sees it."""

    def store_of(service: str) -> ObjectStore:
        keys = shared_credentials(SECRETS / f"object-store-{service}", "default")
        endpoint = stack.lakehouse.options["AWS_ENDPOINT_URL"]
        return ObjectStore(endpoint, keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"])

    return store_of


@pytest.fixture
def objects(store_of: Callable[[str], ObjectStore]) -> Iterator[list[tuple[str, str, str]]]:
    """An object in each place, which is gone after the test: the place, the bucket, the name."""
    root, name = store_of("root").client, f"test-{uuid.uuid4().hex}"
    buckets = {place: place.partition("/")[::2] for place in sorted(PLACES)}
    objects = [(place, bucket, f"{folder}/{name}") for place, (bucket, folder) in buckets.items()]
    for _, bucket, path in objects:
        root.put_object(bucket, path, BytesIO(b"x"), 1)
    yield objects
    for _, bucket, path in objects:
        root.remove_object(bucket, path)


def is_done(action: Callable[[], object]) -> bool:
    """Return True if the store lets it be done."""
    try:
        action()
    except S3Error as error:
        if error.code != "AccessDenied":
            raise
        return False
    return True


@pytest.mark.parametrize(("service", "rights"), RIGHTS, ids=[service for service, _ in RIGHTS])
def test_a_key_opens_what_its_service_needs_and_nothing_else(
    store_of: Callable[[str], ObjectStore],
    objects: list[tuple[str, str, str]],
    service: str,
    rights: Mapping[str, Set[str]],
) -> None:
    client = store_of(service).client

    for action, act in ACTIONS.items():
        done = frozenset(place for place, bucket, path in objects if is_done(lambda: act(client, bucket, path)))  # noqa: B023
        assert done == rights[action], action


@pytest.mark.parametrize("service", [service for service, _ in RIGHTS])
def test_no_service_makes_buckets_or_users(store_of: Callable[[str], ObjectStore], service: str) -> None:
    store = store_of(service)

    assert not is_done(lambda: store.client.make_bucket(f"test-{uuid.uuid4().hex}"))
    with pytest.raises(MinioAdminException, match="AccessDenied"):
        store.admin.user_list()


@pytest.mark.parametrize("service", [service for service, _ in RIGHTS])
def test_no_service_makes_a_further_key_which_would_outlive_a_rotation(
    store_of: Callable[[str], ObjectStore], service: str
) -> None:
    with pytest.raises(MinioAdminException, match="AccessDenied"):
        store_of(service).admin.add_service_account(policy={"Version": "2012-10-17", "Statement": []})
