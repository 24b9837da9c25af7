"""The object store brought in line with its file; and the stack's one-shots, which have done so for all services."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from minio.commonconfig import ENABLED
from minio.error import S3Error
from minio.minioadmin import MinioAdmin
from minio.versioningconfig import SUSPENDED, VersioningConfig

from tests.stack.object_store import ObjectStore
from tests.stack.platform import Stack
from tools.stack import AUTHORITY, registry_url, registry_writer

ROOT = Path(__file__).parents[2]


def may(*actions: str, bucket: str) -> str:
    """A policy that allows some actions in a bucket."""
    resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": [f"s3:{action}" for action in actions], "Resource": resources}],
        }
    )


@dataclass(slots=True)
class Declared:
    """A bucket and a user of random names, declared in a folder, on a real store."""

    store: ObjectStore
    folder: Path
    name: str = field(default_factory=lambda: f"test-{uuid.uuid4().hex[:20]}")
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Declare one bucket and one user that may read it."""
        (self.folder / "policies").mkdir()
        (self.folder / "buckets.yaml").write_text(
            f"buckets: [{{name: {self.name}}}]\nusers: [{{name: {self.name}, policy: {self.name}}}]\n"
        )
        self.policy(may("GetObject", "ListBucket", bucket=self.name))
        self.key(f"secret-{uuid.uuid4().hex}")
        self._write_key("root", self.store.access_key, self.store.secret_key)

    def policy(self, text: str) -> None:
        """What the user may do."""
        (self.folder / "policies" / f"{self.name}.json").write_text(text)

    def key(self, secret: str) -> None:
        self.secret = secret
        self._write_key(self.name, self.name, secret)

    def provision(self) -> int:
        """Bring the store in line. Return the exit code."""
        environment = {
            **os.environ,
            "GAMELAKE_S3_ENDPOINT": self.store.endpoint,
            "PROVISION_SECRETS": str(self.folder),
            "PROVISION_BUCKETS_FILE": str(self.folder / "buckets.yaml"),
            "PROVISION_PATIENCE_SECONDS": "10",
        }
        command = (sys.executable, "-m", "services.provision.buckets")
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        # What else is on the store is left alone, and is none of the test's business.
        self.lines = [line for line in done.stdout.splitlines() if "left alone" not in line]
        self.errors = done.stderr
        return done.returncode

    def as_user(self) -> ObjectStore:
        return self.store.as_user(self.name, self.secret)

    def _write_key(self, name: str, access_key: str, secret: str) -> None:
        text = f"[default]\naws_access_key_id = {access_key}\naws_secret_access_key = {secret}\n"
        (self.folder / f"object-store-{name}").write_text(text)

    errors: str = ""
    secret: str = ""


@pytest.fixture
def admin(object_store: ObjectStore) -> MinioAdmin:
    return object_store.admin


@pytest.fixture
def declared(object_store: ObjectStore, admin: MinioAdmin, tmp_path: Path) -> Iterator[Declared]:
    """A bucket and a user that don't exist yet, and are gone after the test."""
    declared = Declared(object_store, tmp_path)
    yield declared
    for remove in (admin.user_remove, admin.policy_remove):
        remove(declared.name)
    client = object_store.client
    for found in client.list_objects(declared.name, recursive=True, include_version=True):
        client.remove_object(declared.name, str(found.object_name), version_id=found.version_id)
    client.remove_bucket(declared.name)


def put(store: ObjectStore, bucket: str) -> None:
    store.client.put_object(bucket, "object", BytesIO(b"x"), 1)


def refusal(store: ObjectStore, bucket: str) -> str:
    """Return the word by which a store refuses a write."""
    with pytest.raises(S3Error) as refused:
        put(store, bucket)
    return str(refused.value.code)


def test_buckets_and_users_are_made_as_declared_and_a_second_run_changes_nothing(declared: Declared) -> None:
    assert declared.provision() == 0, declared.errors
    assert declared.lines == [
        f"buckets: created the bucket {declared.name}",
        f"buckets: the policy {declared.name} is new",
        f"buckets: created the user {declared.name}",
        f"buckets: {declared.name} has the rights of policies/{declared.name}.json",
    ]
    assert declared.provision() == 0
    assert declared.lines == ["buckets: nothing to change"]


def test_a_user_may_do_what_its_policy_says_and_nothing_else(declared: Declared) -> None:
    declared.provision()
    put(declared.store, declared.name)

    user = declared.as_user()

    assert user.client.get_object(declared.name, "object").read() == b"x"
    assert refusal(user, declared.name) == "AccessDenied"


def test_another_policy_in_the_file_is_applied_by_the_next_run(declared: Declared) -> None:
    declared.provision()
    declared.policy(may("PutObject", bucket=declared.name))

    assert declared.provision() == 0
    assert declared.lines == [f"buckets: the policy {declared.name} is changed"]
    put(declared.as_user(), declared.name)


def test_a_new_secret_replaces_the_old_one(declared: Declared) -> None:
    declared.provision()
    before = declared.as_user()
    declared.key(f"other-{uuid.uuid4().hex}")

    assert declared.provision() == 0
    assert declared.lines == [f"buckets: the user {declared.name} has a new key, from its secret"]
    assert list(declared.as_user().client.list_objects(declared.name)) == []
    with pytest.raises(S3Error, match="SignatureDoesNotMatch"):
        list(before.client.list_objects(declared.name))


def test_rights_that_were_given_by_hand_are_taken_away(declared: Declared, admin: MinioAdmin) -> None:
    declared.provision()
    admin.attach_policy(["readwrite"], user=declared.name)
    put(declared.as_user(), declared.name)

    assert declared.provision() == 0
    assert declared.lines == [f"buckets: {declared.name} no longer has the rights of readwrite"]
    assert refusal(declared.as_user(), declared.name) == "AccessDenied"


def test_a_bucket_keeps_no_versions(declared: Declared) -> None:
    declared.provision()
    declared.store.client.set_bucket_versioning(declared.name, VersioningConfig(ENABLED))

    assert declared.provision() == 0
    assert declared.store.client.get_bucket_versioning(declared.name).status == SUSPENDED
    assert declared.provision() == 0
    assert declared.lines == ["buckets: nothing to change"]


def test_a_bucket_expires_objects_and_notifies_of_new_ones_as_declared_and_a_change_is_reverted(
    declared: Declared,
) -> None:
    (declared.folder / "buckets.yaml").write_text(
        f"buckets: [{{name: {declared.name}, expires_days: 3, notification: {{target: FILES, prefix: in/}}}}]\n"
        f"users: [{{name: {declared.name}, policy: {declared.name}}}]\n"
    )
    made = [
        f"buckets: objects of {declared.name} expire after 3 days",
        f"buckets: {declared.name} notifies FILES of new objects",
    ]

    assert declared.provision() == 0, declared.errors
    assert declared.lines[1:3] == made
    assert declared.provision() == 0
    assert declared.lines == ["buckets: nothing to change"]
    declared.store.client.delete_bucket_notification(declared.name)
    declared.store.client.delete_bucket_lifecycle(declared.name)
    assert declared.provision() == 0
    assert declared.lines == made


def test_a_wrong_root_key_is_reported_at_once(declared: Declared) -> None:
    declared.provision()
    text = "[default]\naws_access_key_id = gamelake-root\naws_secret_access_key = 0123456789abcdef\n"
    (declared.folder / "object-store-root").write_text(text)

    assert declared.provision() == 2
    assert "the object store refuses root's key" in declared.errors
    assert "0123456789abcdef" not in declared.errors


ONE_SHOTS = ("create-topics", "create-databases", "create-buckets", "set-compatibility")


@pytest.mark.parametrize("one_shot", ONE_SHOTS)
def test_the_stack_is_as_its_files_declare(stack: Stack, one_shot: str) -> None:
    said = stack.compose("run", "--rm", "--no-deps", "--no-TTY", one_shot)

    assert said.splitlines()[-1].endswith(": nothing to change")


def test_every_one_shot_of_the_stack_has_ended_well(stack: Stack) -> None:
    ended = json.loads(f"[{','.join(stack.compose('ps', '--all', '--format', 'json').splitlines())}]")

    codes = {each["Service"]: each["ExitCode"] for each in ended if each["Service"] in ONE_SHOTS}
    assert codes == dict.fromkeys(ONE_SHOTS, 0)


def test_the_registry_is_read_by_all_and_changed_with_its_writers_password_only(stack: Stack) -> None:
    stack.await_health("registry")
    name, schema = f"test-{uuid.uuid4().hex}", Schema('syntax = "proto3"; message A { string b = 1; }', "PROTOBUF")
    options = {"url": registry_url(), "ssl.ca.location": str(AUTHORITY)}
    writer = registry_writer()
    with SchemaRegistryClient(options) as anonymous:
        with pytest.raises(SchemaRegistryError, match="not authenticated"):
            anonymous.register_schema(name, schema)
        for password in ("wrong", writer.password):
            named = SchemaRegistryClient({**options, "basic.auth.user.info": f"{writer.username}:{password}"})
            with named, nullcontext() if password == writer.password else pytest.raises(SchemaRegistryError):
                named.register_schema(name, schema)
        assert anonymous.get_latest_version(name).schema.schema_str == schema.schema_str
        with pytest.raises(SchemaRegistryError, match="not authenticated"):
            anonymous.delete_subject(name)
