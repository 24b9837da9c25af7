"""All columns that rows are known to have, whichever schema version they come in: what rules may name."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from gamelake.errors import IncompatibleSchemaError, SchemaError
from gamelake.lake.store import Store
from gamelake.silver.events import COMMON_SCHEMA, conform
from gamelake.wire.compiler import message_at
from gamelake.wire.decoder import MessageDecoder
from gamelake.wire.event_schemas import FIRST_MESSAGE, load_schema
from gamelake.wire.schemas import kept_schemas

log = logging.getLogger(__name__)


def known_columns(games_file: Path, store: Store, tables: Iterable[pa.Schema]) -> pa.Schema:
    """The columns of the tables, of the schemas that the lakehouse keeps, and of those beside the games contract.

    Where two give a column two types the first one stands: the platform's own, the contract's newest, then the rest.
    """
    columns = {field.name.lower(): field for field in COMMON_SCHEMA}
    found = (*(_silver_columns(each) for each in _messages(games_file, store)), *tables)
    for field in (field for schema in found for field in schema):
        columns.setdefault(field.name.lower(), field)
    return pa.schema(list(columns.values()))


def _messages(games_file: Path, store: Store) -> Iterator[Descriptor]:
    folders = games_file.parent.glob("proto/v[0-9]*")
    for folder in sorted(folders, key=lambda each: int(each.name[1:]), reverse=True):
        yield load_schema(folder, int(folder.name[1:])).message
    for number, content in reversed(kept_schemas(store)):
        try:
            yield message_at(FileDescriptorSet.FromString(content), FIRST_MESSAGE)
        except SchemaError as error:
            log.info("rules can't rest on schema %d: %s", number, error)


def _silver_columns(message: Descriptor) -> pa.Schema:
    try:
        _, columns = MessageDecoder(message).decode(pa.array([], pa.binary()))
        coordinates = pa.array([], pa.int64())
        return conform(columns, coordinates, coordinates).schema
    except (SchemaError, IncompatibleSchemaError):
        return pa.schema([])
