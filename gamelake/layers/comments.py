"""Comments of the layers' tables: from the games contract, and from comments in the Protobuf sources."""

from collections.abc import Iterator, Mapping
from threading import Lock

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from gamelake.contract.games import GamesContract, TableDescription
from gamelake.delta.comments import Comments
from gamelake.layers.silver import SPREAD
from gamelake.model.naming import SILVER_EVENTS, game_of
from gamelake.objects.store import Store
from gamelake.schemas.schema_cache import kept_schema_ids, schema_path

# Field numbers in the paths of SourceCodeInfo: messages of a file, fields and nested messages of a message.
_MESSAGES, _FIELDS, _NESTED = 4, 2, 3
_DEEPEST = 16
_Found = tuple[tuple[int, ...], DescriptorProto]
# The contract's name for each game's table.
EACH_GAME = "silver/<game>_events"


def field_comments(descriptors: FileDescriptorSet) -> Mapping[str, str]:
    """Return the comments of the fields of the root file's first message and of its inner messages, by dotted path.

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


class SchemaComments:
    """Comments of all schemas that the lakehouse has cached so far; each schema is read once, also by many threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._known: set[int] = set()
        # By column: the id of the newest schema that has a comment of it, and the comment.
        self._newest: dict[str, tuple[int, str]] = {}

    def columns(self) -> Mapping[str, str]:
        """Return the comments by column; the newest schema's win."""
        with self._lock:
            for number in kept_schema_ids(self._store):
                if number not in self._known:
                    self._read(number)
            return {column: comment for column, (_, comment) in self._newest.items()}

    def _read(self, number: int) -> None:
        content = self._store.get(schema_path(number))
        if content is None:
            return
        for column, comment in _spread(field_comments(FileDescriptorSet.FromString(content))).items():
            self._newest[column] = max((number, comment), self._newest.get(column, (number, comment)))
        # A schema of an id never changes.
        self._known.add(number)


class EventComments:
    """Comments by the contract and by the schemas that the lakehouse has cached so far."""

    def __init__(self, contract: GamesContract, store: Store) -> None:
        self.contract = contract
        self._schemas = SchemaComments(store)

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
        return Comments(description, {**self._schemas.columns(), **common, **of_each.columns, **described.columns})


def _spread(comments: Mapping[str, str]) -> Mapping[str, str]:
    inner = f"{SPREAD}."
    return {path.removeprefix(inner): comment for path, comment in comments.items()}
