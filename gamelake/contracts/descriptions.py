"""What the contract says that tables and their columns mean."""

import msgspec


class TableDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a table holds, and what its columns mean; a column inside another one by its dotted path."""

    description: str = ""
    columns: dict[str, str] = {}
