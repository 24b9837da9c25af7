"""Reads a declared state from YAML into its frozen type, with errors that point at file and line."""

from pathlib import Path
from typing import TypeVar

import msgspec

from gamelake.contracts.located_yaml import LocatedDocument, load_located
from gamelake.errors import ContractError

Declared = TypeVar("Declared", bound=msgspec.Struct)
# The place of a value in its document, and what is wrong with it.
Problem = tuple[str, str]


def load_declaration(path: Path, kind: type[Declared]) -> tuple[Declared, LocatedDocument]:
    """Read a file as `kind`; the document tells the lines of what is found wrong later.

    Raises:
        ContractError: the file can't be read, a key is unknown or a value is impossible; names file and line.
    """
    document = load_located(path)
    try:
        return msgspec.convert(document.value, kind), document
    except msgspec.ValidationError as error:
        raise ContractError(document.describe(error)) from error


def refuse_first(problems: list[Problem], document: LocatedDocument) -> None:
    """Do nothing when there is no problem.

    Raises:
        ContractError: there is one; names file and line of the first.
    """
    for place, problem in problems:
        raise ContractError(f"{document.path}:{document.line_of(place)}: {problem}")


def repeated(names: list[str], place: str) -> list[Problem]:
    """A problem for each name that stands twice; `place` has `{index}` for the number of the entry."""
    return [
        (place.format(index=index), f"'{name}' is listed twice; remove one entry")
        for index, name in enumerate(names)
        if name in names[:index]
    ]
