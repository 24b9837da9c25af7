"""A temporary bucket in the object store of the running stack, filled with small objects."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import obstore
from minio import Minio
from obstore.store import ObjectStore as Objects

from gamelake.storage.store import Location, open_objects
from gamelake.streaming.files.changes import ObjectChange
from tools import stack

FOLDER = "files"
_PUTS_AT_ONCE = 16


@dataclass
class BenchmarkBucket:
    """A bucket to put objects into; `put` is their number so far."""

    name: str
    location: Location
    objects: Objects
    put: int = 0

    def fill(self, count: int) -> list[ObjectChange]:
        """Put `count` more objects; returns their notifications."""
        keys = [f"{FOLDER}/{number:08d}.json" for number in range(self.put, self.put + count)]
        self.put += count
        with ThreadPoolExecutor(_PUTS_AT_ONCE) as pool:
            etags = list(pool.map(self._put, keys))
        now = datetime.now(UTC)
        return [
            ObjectChange(bucket=self.name, key=key, etag=etag, size=2, moment=now)
            for key, etag in zip(keys, etags, strict=True)
        ]

    def _put(self, key: str) -> str:
        return (obstore.put(self.objects, key, b"{}\n").get("e_tag") or "").strip('"')


@contextmanager
def own_bucket() -> Iterator[BenchmarkBucket]:
    """A bucket in the stack's object store; it is deleted at the end of the block."""
    name, root = f"discovery-{uuid.uuid4().hex}", stack.lakehouse("root")
    options = dict(root.options)
    client = Minio(
        urlsplit(options["AWS_ENDPOINT_URL"]).netloc,
        options["AWS_ACCESS_KEY_ID"],
        options["AWS_SECRET_ACCESS_KEY"],
        secure=False,
        region="us-east-1",
    )
    client.make_bucket(name)
    location = Location(uri=f"s3://{name}", options=options)
    objects = open_objects(location)
    try:
        yield BenchmarkBucket(name, location, objects)
    finally:
        for batch in obstore.list(objects):
            obstore.delete(objects, [each["path"] for each in batch])
        client.remove_bucket(name)
