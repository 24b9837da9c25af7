"""A read-only client of any Confluent-compatible schema registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from gamelake.model.errors import RegistryUnavailableError, SchemaError, UnknownSchemaError
from gamelake.model.worker_cache import per_worker
from gamelake.schemas.compiler import ROOT_FILE

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
# The registry's codes for: no such subject, no such version, no such schema.
# Source: Confluent Schema Registry API reference, "Errors".
_NOT_FOUND = frozenset({40401, 40402, 40403})
MOST_REFERENCES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSource:
    """The text of one schema and of everything it imports, by the path it is imported under."""

    texts: dict[str, str]
    root: str = ROOT_FILE


class SchemaRegistry:
    """Fetches schemas by id, together with the schemas that they refer to."""

    def __init__(self, url: str) -> None:
        self._url = url

    def source(self, schema_id: int) -> SchemaSource:
        """Return the source of a schema.

        Raises:
            UnknownSchemaError: the registry has no schema under this id.
            SchemaError: the schema is not a Protobuf schema.
            RegistryUnavailableError: the registry did not answer, or refused.
        """
        with _translated_errors(f"schema {schema_id}"), _asking(self._url) as client:
            schema = client.get_schema(schema_id)
            if schema.schema_type != "PROTOBUF":
                raise SchemaError(f"schema {schema_id} is {schema.schema_type}, not PROTOBUF")
            texts = _references(client, schema_id, schema.references or [])
        # A reference may have the name that the schema itself gets, which its text does not say.
        root = next(name for name in _root_names() if name not in texts)
        texts[root] = schema.schema_str or ""
        return SchemaSource(texts=texts, root=root)

    def versions(self, schema_id: int) -> list[tuple[str, int]]:
        """Return the subjects that have a schema, each with the schema's version in it.

        Raises:
            UnknownSchemaError: the registry has no schema under this id.
            RegistryUnavailableError: the registry did not answer, or refused.
        """
        with _translated_errors(f"schema {schema_id}"), _asking(self._url) as client:
            found = client.get_schema_versions(schema_id)
            return [(str(each.subject), int(each.version or 0)) for each in found]

    def newest(self, subject: str) -> int:
        """Return the id of a subject's newest version.

        Raises:
            UnknownSchemaError: the subject has none.
            RegistryUnavailableError: the registry did not answer, or refused.
        """
        with _translated_errors(f"schema of {subject}"), _asking(self._url) as client:
            return int(client.get_latest_version(subject).schema_id or 0)

    def older(self, subject: str) -> Iterator[int]:
        """Yield the ids of a subject's other versions, from new to old.

        Raises:
            UnknownSchemaError: the subject has none.
            RegistryUnavailableError: the registry did not answer, or refused.
        """
        with _translated_errors(f"schema of {subject}"), _asking(self._url) as client:
            for version in sorted(client.get_versions(subject), reverse=True)[1:]:
                yield int(client.get_version(subject, version).schema_id or 0)


@contextmanager
def _asking(url: str) -> Iterator[SchemaRegistryClient]:
    """Give the client of this process for a question; it keeps connections open, and no answers."""
    # Loading the client's HTTP stack takes a second, and a worker whose schemas are all known never needs it.
    from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415

    # No retries here: how long to wait for a registry that is down is the caller's decision.
    settings = {"url": url, "timeout": 5.0, "max.retries": 0}
    client = per_worker(
        SchemaRegistryClient, url, lambda: SchemaRegistryClient(settings), close=SchemaRegistryClient.close
    )
    try:
        yield client
    finally:
        # A cached newest version would never be another one, and cached schemas have no bound.
        client.clear_caches()  # type: ignore[no-untyped-call] # theirs


@contextmanager
def _translated_errors(wanted: str) -> Iterator[None]:
    """Raise this library's errors in place of the client's, whatever the registry or a proxy in front of it answers."""
    from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415 # as above

    try:
        yield
    except SchemaError:
        raise
    except SchemaRegistryError as error:
        # A proxy's own 404 does not say that the registry lacks the schema.
        if error.error_code in _NOT_FOUND:
            raise UnknownSchemaError(f"the registry has no {wanted}") from error
        raise RegistryUnavailableError(
            f"the registry answered with status {error.http_status_code}, code {error.error_code}"
        ) from error
    except UnicodeEncodeError as error:
        raise SchemaError(f"{wanted} refers to a name that is not text") from error
    except Exception as error:
        raise RegistryUnavailableError(
            f"the registry can't be reached, or its response can't be read: {error}"
        ) from error


def _references(client: SchemaRegistryClient, schema_id: int, references: list[SchemaReference]) -> dict[str, str]:
    """The texts of all schemas that a schema refers to, and that these refer to, by the names of the imports."""
    from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415 # as above

    texts: dict[str, str] = {}
    left = list(references)
    while left:
        reference = left.pop(0)
        name = str(reference.name)
        if name in texts:
            continue
        if len(texts) >= MOST_REFERENCES:
            raise SchemaError(f"schema {schema_id} refers to more than {MOST_REFERENCES} schemas")
        try:
            registered = client.get_version(str(reference.subject), int(reference.version or 0))
        except SchemaRegistryError as error:
            if error.error_code not in _NOT_FOUND:
                raise
            missing = f"version {reference.version} of {reference.subject}"
            raise SchemaError(f"schema {schema_id} refers to {missing}, which the registry has not") from error
        texts[name] = registered.schema.schema_str or ""
        left += registered.schema.references or []
    return texts


def _root_names() -> Iterator[str]:
    yield ROOT_FILE
    for number in count(1):
        yield f"{number}/{ROOT_FILE}"
