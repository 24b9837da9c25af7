"""Comments of the layers' tables: from the games contract, and from comments in the Protobuf sources."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from gamelake.layers.silver import SPREAD
from gamelake.model.games import GamesContract, TableDescription
from gamelake.model.naming import SILVER_EVENTS, game_of
from gamelake.schemas.schema_cache import kept_schemas
from gamelake.storage.comments import Comments
from gamelake.storage.store import Store

# Field numbers in the paths of SourceCodeInfo: messages of a file, fields and nested messages of a message.
_MESSAGES, _FIELDS, _NESTED = 4, 2, 3
_DEEPEST = 16
_Found = tuple[tuple[int, ...], DescriptorProto]
# The contract's name for each game's table.
EACH_GAME = "silver/<game>_events"


def field_comments(descriptors: FileDescriptorSet) -> Mapping[str, str]:
    """Comments of the fields of the root file's first message and of its inner messages, by dotted path.

    Only messages of the root file itself have comments; a set that was compiled without source info has none.
    """
    root = descriptors.file[-1]
    written = _written(root)
    messages = {f".{root.package}.{name}".replace("..", "."): found for name, found in _messages(root)}
    if not root.message_type:
        return {}
    first = next(iter(messages.values()))
    return dict(_of_fields(first, "", messages, written))


def _written(root: FileDescriptorProto) -> Mapping[tuple[int, ...], str]:
    return {
        tuple(location.path): " ".join((location.leading_comments or location.trailing_comments).split())
        for location in root.source_code_info.location
        if location.leading_comments or location.trailing_comments
    }


def _messages(root: FileDescriptorProto) -> Iterator[tuple[str, _Found]]:
    for number, message in enumerate(root.message_type):
        yield from _with_nested(message, (_MESSAGES, number), message.name)


def _with_nested(message: DescriptorProto, path: tuple[int, ...], name: str) -> Iterator[tuple[str, _Found]]:
    yield name, (path, message)
    for number, nested in enumerate(message.nested_type):
        yield from _with_nested(nested, (*path, _NESTED, number), f"{name}.{nested.name}")


def _of_fields(
    found: _Found, prefix: str, messages: Mapping[str, _Found], written: Mapping[tuple[int, ...], str]
) -> Iterator[tuple[str, str]]:
    path, message = found
    if prefix.count(".") > _DEEPEST:
        # A recursive message; its columns are cut at some depth, too.
        return
    for number, field in enumerate(message.field):
        place = f"{prefix}{field.name}"
        if comment := written.get((*path, _FIELDS, number)):
            yield place, comment
        if field.type_name in messages:
            yield from _of_fields(messages[field.type_name], f"{place}.", messages, written)


@dataclass(frozen=True, slots=True)
class EventComments:
    """Comments by the contract and by the schemas that the lakehouse has cached so far."""

    contract: GamesContract
    store: Store

    def __call__(self, table: str) -> Comments:
        """A table's comments; empty if the contract does not describe it."""
        described = self.contract.tables.get(table, TableDescription())
        game = game_of(table)
        if game is None:
            return Comments(described.description, described.columns)
        title = next((spec.game_name for spec in self.contract.games if spec.name == game), game)
        of_each = self.contract.tables.get(EACH_GAME, TableDescription())
        common = self.contract.tables.get(SILVER_EVENTS, TableDescription()).columns
        description = described.description or of_each.description.replace("<game>", title)
        return Comments(description, {**self._of_messages(), **common, **of_each.columns, **described.columns})

    def _of_messages(self) -> Mapping[str, str]:
        """Comments of all cached schemas; the newest schema's win."""
        columns: dict[str, str] = {}
        for _, content in kept_schemas(self.store):
            columns |= _spread(field_comments(FileDescriptorSet.FromString(content)))
        return columns


def _spread(comments: Mapping[str, str]) -> Mapping[str, str]:
    inner = f"{SPREAD}."
    return {path.removeprefix(inner): comment for path, comment in comments.items()}
