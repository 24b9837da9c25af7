"""Support calls as rows."""

import msgspec
import pyarrow as pa

from gamelake.privacy.support_calls import decode_call

COLUMNS = pa.schema(
    [
        ("called_at", pa.timestamp("us", "UTC")),
        ("key_id", pa.string()),
        ("role", pa.string()),
        ("game", pa.string()),
        ("action", pa.string()),
        ("pseudonym", pa.string()),
        ("status", pa.int64()),
    ]
)


def call_row(value: bytes) -> dict[str, object]:
    """Convert a record of the topic to a row of `COLUMNS`.

    Raises:
        msgspec.MsgspecError: the record is not a support call.
    """
    return msgspec.structs.asdict(decode_call(value))
