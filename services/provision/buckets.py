"""Brings the object store's buckets, users and policies in line with `compose/object-store/`.

`python -m services.provision.buckets`. No bucket and no user is ever deleted; a user that is declared has the rights of
its policy and no others.
"""

from pathlib import Path

from minio.credentials import Credentials  # type: ignore[attr-defined] # it names no exports

from gamelake.program import OK, run
from services.provision.declarations import BucketSpec, DeclaredBuckets, UserSpec, load_buckets
from services.provision.object_store import FoundUser, ObjectStore, read_key
from services.provision.provisioning import Changes, wait_for
from services.provision.settings import BucketsSettings

ROOT = "root"


def main() -> int:
    """Run once; 0 when the object store is as declared."""
    settings = BucketsSettings.from_env()
    declared = load_buckets(settings.file)
    keys = {user.name: read_key(_secret(settings.secrets, user.name)) for user in declared.users}
    store = ObjectStore(settings.endpoint, read_key(_secret(settings.secrets, ROOT)))
    changes = Changes("buckets")

    def bring_all_in_line() -> None:
        bring_buckets_in_line(store, declared, store.buckets(), changes)
        bring_policies_in_line(store, declared, changes)
        bring_users_in_line(store, declared, keys, changes)

    # Begun again until it is through: what was done is found done.
    wait_for("object-store", bring_all_in_line, settings.patience)
    changes.close()
    return OK


def bring_buckets_in_line(
    store: ObjectStore, declared: DeclaredBuckets, found: frozenset[str], changes: Changes
) -> None:
    """Make the buckets that are missing; none keeps versions, some let objects expire or tell of new ones."""
    for bucket in declared.buckets:
        if bucket.name not in found:
            store.create_bucket(bucket.name)
            changes.note(f"made the bucket {bucket.name}")
        elif store.keeps_versions(bucket.name):
            store.keep_no_versions(bucket.name)
            changes.note(f"{bucket.name} keeps no versions any more; those that it has stay")
        _align_bucket(store, bucket, changes)
    for name in sorted(found - {bucket.name for bucket in declared.buckets}):
        changes.left_alone(f"the bucket {name}, which the file does not name")


def _align_bucket(store: ObjectStore, bucket: BucketSpec, changes: Changes) -> None:
    if bucket.expires_days is not None and store.expires_days(bucket.name) != bucket.expires_days:
        store.let_expire(bucket.name, bucket.expires_days)
        changes.note(f"objects of {bucket.name} expire after {bucket.expires_days} days")
    if bucket.tells is not None and store.tells(bucket.name) != bucket.tells:
        store.tell_of(bucket.name, bucket.tells)
        changes.note(f"{bucket.name} tells {bucket.tells.target} of new objects")


def bring_policies_in_line(store: ObjectStore, declared: DeclaredBuckets, changes: Changes) -> None:
    """Write the policies that are missing or say something else."""
    for policy in declared.policies:
        found = store.policy(policy.name)
        if found is None or not policy.says_the_same_as(found):
            store.set_policy(policy)
            changes.note(f"the policy {policy.name} is {'new' if found is None else 'another one'}")


def bring_users_in_line(
    store: ObjectStore, declared: DeclaredBuckets, keys: dict[str, Credentials], changes: Changes
) -> None:
    """Make the users that are missing, bring their keys and their rights up to date."""
    found = store.users()
    for user in declared.users:
        key = keys[user.name]
        _align(store, user, key, found.get(key.access_key), changes)
    for access_key in sorted(found.keys() - {key.access_key for key in keys.values()}):
        changes.left_alone(f"the user {access_key}, whose key is none of the file's users'")


def _align(store: ObjectStore, user: UserSpec, key: Credentials, found: FoundUser | None, changes: Changes) -> None:
    if found is None:
        store.set_user(key)
        changes.note(f"made the user {user.name}")
    elif not (found.is_enabled and store.knows(key)):
        store.set_user(key)
        changes.note(f"the user {user.name} has the key of its secret now")
    policies = found.policies if found else frozenset[str]()
    if user.policy not in policies:
        store.attach(key.access_key, user.policy)
        changes.note(f"{user.name} has the rights of policies/{user.policy}.json")
    for policy in sorted(policies - {user.policy}):
        store.detach(key.access_key, policy)
        changes.note(f"{user.name} no more has the rights of {policy}")


def _secret(secrets: Path, user: str) -> Path:
    return secrets / f"object-store-{user}"


if __name__ == "__main__":
    run(main)
