"""The event schemas of the contract, for programs that produce events: compiling and registering of their versions."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.descriptor import Descriptor

from gamelake.model.credentials import ServerCredentials, read_credentials
from gamelake.model.environment import Environment
from gamelake.model.errors import ContractError, RegistryUnavailableError, SchemaError
from gamelake.schemas.compiler import ROOT_FILE, compile_sources, message_at

_FILE = "game_event.proto"
# The message index of the event: it is the first of its file.
FIRST_MESSAGE = (0,)


@dataclass(frozen=True, slots=True)
class EventSchema:
    """One version of the game event."""

    version: int
    text: str
    message: Descriptor


def load_schemas(contracts: Path, versions: int) -> tuple[EventSchema, ...]:
    """Compile versions 1 to `versions` of the game event.

    Raises:
        ContractError: a version is missing, or does not compile.
    """
    return tuple(load_schema(contracts / "proto" / f"v{version}", version) for version in range(1, versions + 1))


def newest_submitted(contracts: Path) -> EventSchema:
    """Compile the newest version of the event as games send it: it can read what all older ones wrote.

    Raises:
        ContractError: there is none, or it does not compile.
    """
    folder = contracts / "submitted"
    versions = [int(path.name[1:]) for path in folder.glob("v[0-9]*")]
    if not versions:
        raise ContractError(f"no version of the event as games send it is in {folder}")
    return load_schema(folder / f"v{max(versions)}", max(versions))


def registry_writer(env: Environment) -> ServerCredentials | None:
    """Return the credentials for registering schemas; None for a registry that accepts them from any client.

    Raises:
        SettingsError: the file of GAMELAKE_REGISTRY_CREDENTIALS_FILE can't be read, or has another form.
    """
    file = env.path("GAMELAKE_REGISTRY_CREDENTIALS_FILE")
    return None if file is None else read_credentials(file, "GAMELAKE_REGISTRY_CREDENTIALS_FILE")


def register(
    schemas: Sequence[EventSchema], *, registry_url: str, topic: str, writer: ServerCredentials | None = None
) -> tuple[int, ...]:
    """Register the schemas in order under the topic's value subject, and give their ids.

    Raises:
        RegistryUnavailableError: the registry did not answer, or refused a schema.
    """
    return tuple(register_text(each.text, registry_url=registry_url, topic=topic, writer=writer) for each in schemas)


def register_text(text: str, *, registry_url: str, topic: str, writer: ServerCredentials | None = None) -> int:
    """Register a schema under the topic's value subject, and give its id.

    Raises:
        RegistryUnavailableError: the registry did not answer, or refused the schema.
    """
    # Only here: the registry's client brings an HTTP stack, which nothing else of the simulator needs, and which warns
    # about a library of its own on being imported.
    with warnings.catch_warnings(record=True):
        from confluent_kafka.schema_registry import Schema, SchemaRegistryClient  # noqa: PLC0415

    options = {"url": registry_url}
    if writer is not None:
        options["basic.auth.user.info"] = f"{writer.username}:{writer.password}"
    try:
        with SchemaRegistryClient(options) as client:
            return int(client.register_schema(f"{topic}-value", Schema(text, "PROTOBUF")))
    except Exception as error:
        raise RegistryUnavailableError(f"the registry at {registry_url} took no schema: {error}") from error


def load_schema(folder: Path, version: int) -> EventSchema:
    """Compile the game event of a version's folder.

    Raises:
        ContractError: the folder is missing, or the schema does not compile.
    """
    source = folder / _FILE
    if not source.is_file():
        raise ContractError(f"version {version} of the game event is not in {folder}")
    text = source.read_text(encoding="utf-8")
    try:
        message = message_at(compile_sources({ROOT_FILE: text}), FIRST_MESSAGE)
    except SchemaError as error:
        raise ContractError(f"{source}: {error}") from error
    return EventSchema(version=version, text=text, message=message)
