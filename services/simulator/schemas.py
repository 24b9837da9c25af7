"""The contract's versions: compiled for this program, and registered under the topic's subject."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

from gamelake.errors import ContractError, RegistryUnavailableError

_FILE = "game_event.proto"
_MESSAGE = "gamelake.events.GameEvent"


@dataclass(frozen=True, slots=True)
class EventSchema:
    """One version of the game event."""

    version: int
    text: str
    message: Descriptor


def load_schemas(contracts: Path, versions: int) -> tuple[EventSchema, ...]:
    """Compile versions 1 to `versions` of the game event.

    Raises:
        ContractError: a version is not there, or does not compile.
    """
    return tuple(_load(contracts / "proto" / f"v{version}", version) for version in range(1, versions + 1))


def register(schemas: Sequence[EventSchema], *, registry_url: str, topic: str) -> tuple[int, ...]:
    """Register the schemas in order under the topic's value subject, and give their ids.

    Raises:
        RegistryUnavailableError: the registry did not answer, or refused a schema.
    """
    # Only here: the registry's client brings an HTTP stack, which nothing else of the simulator needs.
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient  # noqa: PLC0415

    try:
        client = SchemaRegistryClient({"url": registry_url})
        return tuple(client.register_schema(f"{topic}-value", Schema(each.text, "PROTOBUF")) for each in schemas)
    except Exception as error:
        raise RegistryUnavailableError(f"the registry at {registry_url} took no schema: {error}") from error


def _load(folder: Path, version: int) -> EventSchema:
    source = folder / _FILE
    if not source.is_file():
        raise ContractError(f"version {version} of the game event is not in {folder}")
    pool = DescriptorPool()
    for file in _compile(folder).file:
        pool.Add(file)
    return EventSchema(version=version, text=source.read_text(), message=pool.FindMessageTypeByName(_MESSAGE))


def _compile(folder: Path) -> FileDescriptorSet:
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "event.pb"
        arguments = [f"-I{folder}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={out}", _FILE]
        if protoc.main(["protoc", *arguments]) != 0:
            raise ContractError(f"{folder / _FILE} does not compile")
        return FileDescriptorSet.FromString(out.read_bytes())
