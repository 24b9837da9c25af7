"""YAML documents with the line of each value, so that errors name file and line."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from gamelake.model.errors import ContractError

Declared = TypeVar("Declared", bound=msgspec.Struct)
# The path of a value in its document, and what is wrong with it.
Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LocatedDocument:
    """A YAML document and its lines, keyed by paths such as `$.games[3].match`."""

    path: Path
    value: object
    lines: dict[str, int]

    def line_of(self, place: str) -> int:
        """Line of the value at `place`, or of the nearest value around it."""
        while place and place not in self.lines:
            place = re.sub(r"(\.[^.\[]+|\[[^\]]*\])$", "", place) if place != "$" else ""
        return self.lines.get(place, 1)

    def describe(self, error: msgspec.ValidationError) -> str:
        """The validation error as `file:line: what is wrong`."""
        message, _, place = str(error).partition(" - at `")
        place = place.rstrip("`") or "$"
        unknown = re.search(r"contains unknown field `(.+)`", message)
        line = self.line_of(f"{place}.{unknown[1]}" if unknown else place)
        problem = f"unknown key '{unknown[1]}'" if unknown else message
        return f"{self.path}:{line}: {problem} (at {place})"


class _StrictLoader(yaml.SafeLoader):
    """Refuses duplicate keys, of which YAML would keep the last one."""


def _mapping_without_duplicates(loader: _StrictLoader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if key in seen:
            raise ContractError(f"{loader.name}:{key_node.start_mark.line + 1}: the key '{key}' is there twice")
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_without_duplicates)


def load_located(path: Path) -> LocatedDocument:
    """Read one YAML file.

    Raises:
        ContractError: the file is missing, is not YAML or repeats a key; the message names file and
            line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ContractError(f"{path}: can't be read ({error.strerror})") from error
    try:
        loader = _StrictLoader(text)
        loader.name = str(path)
        node = loader.get_single_node()
        value = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ContractError(f"{path}:{line}: {error.problem}") from error
    return LocatedDocument(path, value, _lines(node, "$") if node is not None else {})


def load_declaration(path: Path, kind: type[Declared]) -> tuple[Declared, LocatedDocument]:
    """Read a file as `kind`; the document has the line numbers, for errors that are found later.

    Raises:
        ContractError: the file can't be read, a key is unknown or a value is impossible; names file and line.
    """
    document = load_located(path)
    try:
        return msgspec.convert(document.value, kind), document
    except msgspec.ValidationError as error:
        raise ContractError(document.describe(error)) from error


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
