"""The object store that tests run against: the stack's, or another one that two variables name."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from minio import Minio
from minio.credentials import StaticProvider  # type: ignore[attr-defined] # it names no exports
from minio.minioadmin import MinioAdmin

from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location, shared_credentials
from tools.stack import url

ROOT = Path(__file__).parents[2]
REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """An S3 store, and keys that may do everything in it."""

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)

    @classmethod
    def of_the_tests(cls) -> "ObjectStore":
        """The store that GAMELAKE_TEST_S3_ENDPOINT and GAMELAKE_TEST_S3_CREDENTIALS_FILE name, else the stack's.

        Raises:
            SettingsError: there is no credentials file.
        """
        secret = os.environ.get("GAMELAKE_TEST_S3_CREDENTIALS_FILE", str(ROOT / "compose/secrets/object-store-root"))
        keys = shared_credentials(Path(secret), "default")
        endpoint = os.environ.get("GAMELAKE_TEST_S3_ENDPOINT") or url("OBJECT_STORE_PORT")
        return cls(endpoint, keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"])

    def at(self, endpoint: str) -> "ObjectStore":
        """The same store by another address."""
        return replace(self, endpoint=endpoint)

    def as_user(self, access_key: str, secret_key: str) -> "ObjectStore":
        """The same store with another's rights."""
        return replace(self, access_key=access_key, secret_key=secret_key)

    @property
    def client(self) -> Minio:
        """A client of no library that is under test."""
        parts = urlsplit(self.endpoint)
        secure = parts.scheme == "https"
        return Minio(parts.netloc, self.access_key, self.secret_key, secure=secure, region=REGION)

    @property
    def admin(self) -> MinioAdmin:
        parts = urlsplit(self.endpoint)
        provider = StaticProvider(self.access_key, self.secret_key)
        return MinioAdmin(endpoint=parts.netloc, credentials=provider, secure=parts.scheme == "https")

    def variables(self, uri: str) -> dict[str, str]:
        """The settings by which a job has its lakehouse here."""
        return {
            "GAMELAKE_LAKEHOUSE": uri,
            "GAMELAKE_S3_ENDPOINT": self.endpoint,
            "GAMELAKE_S3_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
        }

    def location(self, uri: str) -> Location:
        return LakehouseSettings.from_env(self.variables(uri)).location

    @contextmanager
    def new_bucket(self) -> Iterator[str]:
        """A bucket that is gone after the block."""
        name = f"test-{uuid.uuid4().hex}"
        self.client.make_bucket(name)
        try:
            yield name
        finally:
            # One by one: the request that deletes several is XML, which has no control characters, and a name may.
            for found in self.client.list_objects(name, recursive=True):
                self.client.remove_object(name, str(found.object_name))
            self.client.remove_bucket(name)
