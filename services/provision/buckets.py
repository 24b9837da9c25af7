"""Synchronizes the object store's buckets, users and policies with `compose/object-store/`.

`python -m services.provision.buckets`. It never deletes a bucket or a user; a declared user has exactly the rights of
its policy.
"""

from pathlib import Path

from minio.credentials import Credentials  # type: ignore[attr-defined] # it names no exports

from gamelake.program import OK, run
from services.provision.declarations import BucketSpec, DeclaredBuckets, UserSpec, load_buckets
from services.provision.object_store import FoundUser, ObjectStoreAdmin, read_key
from services.provision.provisioning import ChangeLog, wait_for
from services.provision.settings import BucketsSettings

ROOT = "root"


def main() -> int:
    """Run once; 0 if the object store is as declared."""
    settings = BucketsSettings.from_env()
    declared = load_buckets(settings.file)
    keys = {user.name: read_key(_secret(settings.secrets, user.name)) for user in declared.users}
    store = ObjectStoreAdmin(settings.endpoint, read_key(_secret(settings.secrets, ROOT)))
    changes = ChangeLog("buckets")

    def synchronize() -> None:
        synchronize_buckets(store, declared, store.buckets(), changes)
        synchronize_policies(store, declared, changes)
        synchronize_users(store, declared, keys, changes)

    # Repeated until it succeeds: every step is idempotent.
    wait_for("object-store", synchronize, settings.patience)
    changes.close()
    return OK


def synchronize_buckets(
    store: ObjectStoreAdmin, declared: DeclaredBuckets, found: frozenset[str], changes: ChangeLog
) -> None:
    """Create missing buckets, suspend versioning, set the expiry of objects and the notifications."""
    for bucket in declared.buckets:
        if bucket.name not in found:
            store.create_bucket(bucket.name)
            changes.note(f"created the bucket {bucket.name}")
        elif store.keeps_versions(bucket.name):
            store.keep_no_versions(bucket.name)
            changes.note(f"suspended versioning of {bucket.name}; existing versions stay")
        _align_bucket(store, bucket, changes)
    for name in sorted(found - {bucket.name for bucket in declared.buckets}):
        changes.skipped(f"the bucket {name}, which the file does not name")


def _align_bucket(store: ObjectStoreAdmin, bucket: BucketSpec, changes: ChangeLog) -> None:
    if bucket.expires_days is not None and store.expires_days(bucket.name) != bucket.expires_days:
        store.let_expire(bucket.name, bucket.expires_days)
        changes.note(f"objects of {bucket.name} expire after {bucket.expires_days} days")
    if bucket.notification is not None and store.notification(bucket.name) != bucket.notification:
        store.set_notification(bucket.name, bucket.notification)
        changes.note(f"{bucket.name} notifies {bucket.notification.target} of new objects")


def synchronize_policies(store: ObjectStoreAdmin, declared: DeclaredBuckets, changes: ChangeLog) -> None:
    """Write the policies that are missing or differ."""
    for policy in declared.policies:
        found = store.policy(policy.name)
        if found is None or not policy.is_equivalent_to(found):
            store.set_policy(policy)
            changes.note(f"the policy {policy.name} is {'new' if found is None else 'changed'}")


def synchronize_users(
    store: ObjectStoreAdmin, declared: DeclaredBuckets, keys: dict[str, Credentials], changes: ChangeLog
) -> None:
    """Create missing users, update their keys and their rights."""
    found = store.users()
    for user in declared.users:
        key = keys[user.name]
        _align(store, user, key, found.get(key.access_key), changes)
    for access_key in sorted(found.keys() - {key.access_key for key in keys.values()}):
        changes.skipped(f"the user {access_key}, whose key is none of the file's users'")


def _align(
    store: ObjectStoreAdmin, user: UserSpec, key: Credentials, found: FoundUser | None, changes: ChangeLog
) -> None:
    if found is None:
        store.set_user(key)
        changes.note(f"created the user {user.name}")
    elif not (found.is_enabled and store.knows(key)):
        store.set_user(key)
        changes.note(f"the user {user.name} has a new key, from its secret")
    policies = found.policies if found else frozenset[str]()
    if user.policy not in policies:
        store.attach(key.access_key, user.policy)
        changes.note(f"{user.name} has the rights of policies/{user.policy}.json")
    for policy in sorted(policies - {user.policy}):
        store.detach(key.access_key, policy)
        changes.note(f"{user.name} no longer has the rights of {policy}")


def _secret(secrets: Path, user: str) -> Path:
    return secrets / f"object-store-{user}"


if __name__ == "__main__":
    run(main)
