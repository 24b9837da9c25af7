"""Schemas, frames and a registry without a network."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from google.protobuf.message_factory import GetMessageClass

from gamelake.model.errors import RegistryUnavailableError, UnknownSchemaError
from gamelake.objects.store import Location, Store
from gamelake.schemas.compiler import compile_sources, message_at
from gamelake.schemas.decoder import Decoder, MessageDecoder
from gamelake.schemas.limits import SchemaLimits
from gamelake.schemas.registry import SchemaSource
from gamelake.schemas.schema_cache import SchemaCache, SchemaWait

# Its class is made while the tests run, so its fields are unknown to the type checker.
AnyMessage: TypeAlias = Any

NO_WAIT = SchemaWait(patience=timedelta(0), ask_again_after=timedelta(0))


@dataclass
class FakeRegistry:
    """A registry in memory, which remembers what it was asked for."""

    sources: dict[int, SchemaSource] = field(default_factory=dict)
    is_down: bool = False
    asked: list[int] = field(default_factory=list)

    def source(self, schema_id: int) -> SchemaSource:
        self.asked.append(schema_id)
        if self.is_down:
            raise RegistryUnavailableError("the registry can't be reached")
        if schema_id not in self.sources:
            raise UnknownSchemaError(f"the registry has no schema {schema_id}")
        return self.sources[schema_id]


def schema(text: str) -> SchemaSource:
    return SchemaSource(texts={"schema.proto": text})


def a_store(folder: Path) -> Store:
    return Store(Location(uri=folder.as_uri()))


def a_decoder(folder: Path, texts: dict[int, str], clock: Callable[[], float] = lambda: 0.0) -> Decoder:
    registry = FakeRegistry({schema_id: schema(text) for schema_id, text in texts.items()})
    return Decoder(SchemaCache(registry, a_store(folder), NO_WAIT, clock))


@cache
def message_class(text: str, *index: int) -> AnyMessage:
    return GetMessageClass(message_at(compile_sources({"schema.proto": text}), index or (0,)))


def decoder_of(text: str, *index: int, limits: SchemaLimits | None = None) -> MessageDecoder:
    return MessageDecoder(message_at(compile_sources({"schema.proto": text}), index or (0,)), limits)


def varint(number: int) -> bytes:
    """Write a number as Protobuf does: seven bits a byte, the lowest first."""
    number &= 2**64 - 1
    rest = bytearray()
    while number > 0x7F:
        rest.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*rest, number])


def a_number(field: int, value: int) -> bytes:
    """Encode a field that is a number."""
    return varint(field << 3) + varint(value)


def sized(field: int, content: bytes) -> bytes:
    """Encode a field that has a length: a text, a message, or a list of numbers."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def frame(schema_id: int, body: bytes, *index: int) -> bytes:
    """Frame a body as Confluent's documentation says; without an index it is the first message."""
    path = b"\0" if index in ((), (0,)) else b"".join(varint(step << 1) for step in (len(index), *index))
    return b"\0" + schema_id.to_bytes(4, "big") + path + body


def google_file(name: str) -> str:
    """Read the source of `google/type/date.proto` and its like from the packages that ship them."""
    package, _, file = name.rpartition("/")
    if package == "google/protobuf":
        return (files("grpc_tools") / "_proto" / name).read_text(encoding="utf-8")
    return (files(package.replace("/", ".")) / file).read_text(encoding="utf-8")
