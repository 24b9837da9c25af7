"""How a table's schema takes in the columns of new data: columns are added, at any depth; types never change."""

from collections.abc import Iterable
from functools import lru_cache

import pyarrow as pa

from gamelake.errors import IncompatibleSchemaError
from gamelake.lake.columns import delta_type


def merged(table: pa.Schema, incoming: pa.Schema) -> pa.Schema:
    """The table's schema with what `incoming` adds at the end of each struct; the same object if it adds nothing.

    Raises:
        IncompatibleSchemaError: a column would have to change its type; names the column and both types.
    """
    grown = _grown(table, incoming)
    return table if grown is None else grown


# Thirty tables of one schema ask the same question in every batch.
@lru_cache(maxsize=4096)
def _grown(table: pa.Schema, incoming: pa.Schema) -> pa.Schema | None:
    fields = _merged_fields(list(table), list(incoming), "")
    return None if fields is None else pa.schema(fields)


def _merged_fields(have: list[pa.Field], new: Iterable[pa.Field], path: str) -> list[pa.Field] | None:
    """The union of two lists of fields, None if it is what the first one has already."""
    result = list(have)
    # Spark and Trino take userId and userid for one column.
    places = {field.name.lower(): place for place, field in enumerate(have)}
    changed = False
    for field in new:
        place = places.get(field.name.lower())
        if place is None:
            places[field.name.lower()] = len(result)
            # Merged with nothing, so that names inside of it are checked against each other too.
            added = _merged_type(_without_fields(field.type), field.type, f"{path}{field.name}")
            result.append(pa.field(field.name, delta_type(added or field.type)))
            changed = True
            continue
        if result[place].name != field.name:
            raise IncompatibleSchemaError(f"column {path}{field.name} differs from {result[place].name} by case only")
        merged_type = _merged_type(result[place].type, field.type, f"{path}{field.name}")
        if merged_type is not None:
            result[place] = pa.field(field.name, merged_type)
            changed = True
    return result if changed else None


def _merged_type(have: pa.DataType, new: pa.DataType, path: str) -> pa.DataType | None:
    if pa.types.is_struct(have) and pa.types.is_struct(new):
        fields = _merged_fields(list(have), list(new), f"{path}.")
        return None if fields is None else pa.struct(fields)
    if pa.types.is_list(have) and pa.types.is_list(new):
        element = _merged_type(have.value_type, new.value_type, f"{path}.element")
        return None if element is None else pa.list_(pa.field("element", element))
    if pa.types.is_map(have) and pa.types.is_map(new):
        _merged_type(have.key_type, new.key_type, f"{path}.key")
        item = _merged_type(have.item_type, new.item_type, f"{path}.value")
        return None if item is None else pa.map_(have.key_type, item)
    if not delta_type(have).equals(delta_type(new)):
        raise IncompatibleSchemaError(f"column {path} is {have} in the table and {new} in the record")
    return None


def _without_fields(arrow: pa.DataType) -> pa.DataType:
    """The same type with its structs empty."""
    if pa.types.is_struct(arrow):
        return pa.struct([])
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("element", _without_fields(arrow.value_type)))
    return pa.map_(arrow.key_type, _without_fields(arrow.item_type)) if pa.types.is_map(arrow) else arrow
