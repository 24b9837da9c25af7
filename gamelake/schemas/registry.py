"""A read-only client of any Confluent-compatible schema registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from gamelake.model.errors import RegistryUnavailableError, SchemaError, UnknownSchemaError
from gamelake.schemas.compiler import ROOT_FILE

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

_NOT_FOUND = 404
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

    def _client(self) -> SchemaRegistryClient:
        """A client for one question: they are rare, since schemas are cached, and its connection ends with it."""
        # Loading the client's HTTP stack takes a second, and a worker whose schemas are all known never needs it.
        from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415

        # No retries here: how long to wait for a registry that is down is the caller's decision.
        return SchemaRegistryClient({"url": self._url, "timeout": 5.0, "max.retries": 0})

    def source(self, schema_id: int) -> SchemaSource:
        """The source of a schema.

        Raises:
            UnknownSchemaError: the registry has no schema under this id.
            SchemaError: the schema is no Protobuf schema.
            RegistryUnavailableError: the registry did not answer, or refused.
        """
        import httpx2  # noqa: PLC0415 # as above
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415

        try:
            with self._client() as client:
                schema = client.get_schema(schema_id)
                if schema.schema_type != "PROTOBUF":
                    raise SchemaError(f"schema {schema_id} is {schema.schema_type}, not PROTOBUF")
                texts = _references(client, schema_id, schema.references or [])
            # A reference may have the name that the schema itself gets, which its text does not say.
            root = next(name for name in _root_names() if name not in texts)
            texts[root] = schema.schema_str or ""
        except SchemaRegistryError as error:
            raise _classified(schema_id, error) from error
        except httpx2.HTTPError as error:
            raise RegistryUnavailableError(f"the registry can't be reached: {error}") from error
        except UnicodeEncodeError as error:
            raise SchemaError(f"schema {schema_id} refers to a name that is not text") from error
        except (ValueError, KeyError, TypeError) as error:
            raise RegistryUnavailableError(f"the registry's response can't be read: {error}") from error
        return SchemaSource(texts=texts, root=root)

    def versions(self, schema_id: int) -> list[tuple[str, int]]:
        """The subjects that have a schema, each with its version there.

        Raises:
            UnknownSchemaError: the registry has no schema under this id.
            RegistryUnavailableError: the registry did not answer, or refused.
        """
        import httpx2  # noqa: PLC0415 # as above
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415

        try:
            with self._client() as client:
                found = client.get_schema_versions(schema_id)
        except SchemaRegistryError as error:
            raise _classified(schema_id, error) from error
        except httpx2.HTTPError as error:
            raise RegistryUnavailableError(f"the registry can't be reached: {error}") from error
        return [(str(each.subject), int(each.version or 0)) for each in found]

    def newest(self, subject: str) -> int:
        """The id of a subject's newest version.

        Raises:
            UnknownSchemaError: the subject has none.
            RegistryUnavailableError: the registry did not answer, or refused.
        """
        import httpx2  # noqa: PLC0415 # as above
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415

        try:
            with self._client() as client:
                return int(client.get_latest_version(subject).schema_id or 0)
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                raise UnknownSchemaError(f"the registry has no schema of {subject}") from error
            raise RegistryUnavailableError(f"the registry answered {error.http_status_code}") from error
        except httpx2.HTTPError as error:
            raise RegistryUnavailableError(f"the registry can't be reached: {error}") from error


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
            if error.http_status_code != _NOT_FOUND:
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


def _classified(schema_id: int, error: SchemaRegistryError) -> UnknownSchemaError | RegistryUnavailableError:
    if error.http_status_code == _NOT_FOUND:
        return UnknownSchemaError(f"the registry has no schema {schema_id}")
    return RegistryUnavailableError(f"the registry answered {error.http_status_code}: {error.error_message}")
