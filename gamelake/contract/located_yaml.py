"""YAML documents with the line of each value, so that errors name file and line."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
import yaml

from gamelake.contract.declared_names import remedy
from gamelake.model.errors import ContractError, GamelakeError

Declared = TypeVar("Declared", bound=msgspec.Struct)
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
_MOST_BYTES, _MOST_NODES = 4 * 2**20, 200_000
# msgspec collects what it knows of a type at the type's first use: two threads that do so at once once crashed serving.
_converting = Lock()
# The path of a value in its document, and what is wrong with it.
Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LocatedDocument:
    """A YAML document and its lines, keyed by paths such as `$.games[3].match`."""

    path: Path
    value: object
    lines: dict[str, int]

    def line_of(self, place: str) -> int:
        """Return the line of the value at `place`, or of the nearest value around it."""
        while place and place not in self.lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        return self.lines.get(place, 1)

    def describe(self, error: msgspec.ValidationError, kind: type[msgspec.Struct]) -> str:
        """Render the validation error of a conversion to `kind` as `file:line: what is wrong`."""
        message, _, place = str(error).partition(" - at `")
        # A key of a wrong type is "key` in `$.games".
        place = place.rpartition("key` in `")[2].rstrip("`") or "$"
        unknown = re.search(r"contains unknown field `(.+)`", message)
        line = self.line_of(f"{place}.{unknown[1]}" if unknown else place)
        problem = f"unknown key '{unknown[1]}'" if unknown else message
        return f"{self.path}:{line}: {problem}{remedy(kind, place, message)} (at {place})"


@contextmanager
def refused_by_file(path: Path, line: int = 1) -> Iterator[None]:
    """Turn whatever the content of a file raises in the block into an error that names the file and a line.

    Raises:
        ContractError: the block failed.
        GamelakeError: the block failed with an error that says already what is wrong.
    """
    try:
        yield
    except GamelakeError:
        raise
    except Exception as error:
        problem = str(error).partition("\n")[0] or "it can't be read"
        raise ContractError(f"{path}:{line}: {type(error).__name__}: {problem}") from error


def declaration(
    load: Callable[Concatenate[Path, Arguments], Result],
) -> Callable[Concatenate[Path, Arguments], Result]:
    """Decorate a function that reads a declaration, whose path is the first argument, by `refused_by_file`."""

    @wraps(load)
    def loading(path: Path, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with refused_by_file(path):
            return load(path, *arguments, **named)

    return loading


class _StrictLoader(yaml.SafeLoader):
    """Refuses duplicate keys; YAML would keep the last one."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        super().__init__(text)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:  # PyYAML's own
        with refused_by_file(self.path, node.start_mark.line + 1):
            return super().construct_object(node, deep)


def _mapping_without_duplicates(loader: _StrictLoader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise ContractError(f"{loader.path}:{key_node.start_mark.line + 1}: the key '{key}' is there twice")
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_without_duplicates)


@declaration
def load_located(path: Path) -> LocatedDocument:
    """Read one YAML file.

    Raises:
        ContractError: the file is missing, is not YAML or repeats a key; the message names file and
            line.
    """
    text = _text_of(path)
    try:
        loader = _StrictLoader(text, path)
        node = loader.get_single_node()
        _expanded(node, path, {})
        value = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ContractError(f"{path}:{line}: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ContractError(f"{path}:{line}: the character {error.character!r} is not allowed; remove it") from error
    return LocatedDocument(path, value, _lines(node, "$") if node is not None else {})


def _expanded(node: yaml.Node | None, path: Path, known: dict[int, int]) -> int:
    """The number of nodes of a document with its aliases written out: a short file can have more than a memory holds.

    Raises:
        ContractError: a node contains itself, or too many others.
    """
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in known:
        known[id(node)] = 0
        parts = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        size = 1 + sum(_expanded(part, path, known) for part in parts)
        known[id(node)] = size if size <= _MOST_NODES else 0
    if known[id(node)] == 0:
        raise ContractError(f"{path}:{node.start_mark.line + 1}: the value contains itself, or too many aliases")
    return known[id(node)]


def _text_of(path: Path) -> str:
    try:
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise ContractError(f"{path}:1: has {size} bytes, more than {_MOST_BYTES}; is it another file?")
        content = path.read_bytes()
        return content.decode("utf-8")
    except OSError as error:
        raise ContractError(f"{path}:1: can't be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ContractError(f"{path}:{line}: the file is not UTF-8; save it in this encoding") from error


@declaration
def load_declaration(path: Path, kind: type[Declared]) -> tuple[Declared, LocatedDocument]:
    """Read a file as `kind`; the document has the line numbers, for errors that are found later.

    Raises:
        ContractError: the file can't be read, a key is unknown or a value is impossible; names file and line.
    """
    document = load_located(path)
    try:
        with _converting:
            return msgspec.convert(document.value, kind), document
    except msgspec.ValidationError as error:
        raise ContractError(document.describe(error, kind)) from error


def raise_first(problems: list[Problem], document: LocatedDocument) -> None:
    """Raise the first problem, if there is one.

    Raises:
        ContractError: there is one; names file and line of the first.
    """
    for place, problem in problems:
        raise ContractError(f"{document.path}:{document.line_of(place)}: {problem}")


def _lines(node: yaml.Node, place: str) -> dict[str, int]:
    lines = {place: node.start_mark.line + 1}
    if isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            lines |= _lines(child, f"{place}.{key.value}")
            lines[f"{place}.{key.value}"] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            lines |= _lines(child, f"{place}[{index}]")
    return lines
