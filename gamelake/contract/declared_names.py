"""Names that a declaration may have at a place: the values of a choice, or the keys of an object."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import inspect

from gamelake.model.choices import allowed

_STEP = re.compile(r"\.([^.\[]+)|(\[)")
_MISSPELT = re.compile(r"Invalid enum value '?(?P<value>.*?)'?|Object contains unknown field `(?P<key>.+)`", re.DOTALL)


def remedy(kind: type[Any], place: str, problem: str) -> str:
    """Return what may stand instead of a misspelt name, as the end of an error's text; empty for another problem.

    Args:
        kind: the type of the whole document.
        place: the path at which msgspec refused it, such as `$.rules[0].severity`.
        problem: the message of msgspec, without the place.
    """
    misspelt = _MISSPELT.fullmatch(problem)
    if misspelt is None:
        return ""
    steps = [name or "[" for name, _ in _STEP.findall(place)]
    names = [
        name
        for found in _types_at(inspect.type_info(kind), steps)
        for name in (_keys(found) if misspelt["key"] else _values(found))
    ]
    return f"; it must be {allowed(names, misspelt['key'] or misspelt['value'])}" if names else ""


def _types_at(kind: inspect.Type, steps: Sequence[str]) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _types_at(each, steps)
    elif isinstance(kind, inspect.Metadata):
        yield from _types_at(kind.type, steps)
    elif not steps:
        yield kind
    else:
        for each in _parts(kind, steps[0]):
            yield from _types_at(each, steps[1:])


def _parts(kind: inspect.Type, step: str) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.StructType):
        yield from (field.type for field in kind.fields if field.encode_name == step)
    elif isinstance(kind, inspect.DictType):
        yield kind.value_type
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType | inspect.SetType | inspect.FrozenSetType):
        yield kind.item_type


def _values(kind: inspect.Type) -> Iterator[str]:
    if isinstance(kind, inspect.EnumType):
        yield from (str(each.value) for each in kind.cls)
    elif isinstance(kind, inspect.LiteralType):
        yield from map(str, kind.values)


def _keys(kind: inspect.Type) -> Iterator[str]:
    if isinstance(kind, inspect.StructType):
        yield from (field.encode_name for field in kind.fields)
