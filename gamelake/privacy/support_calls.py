"""Support calls as the audit has them: who asked for which player's data, or its erasure; never a player's name."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec


class SupportAction(StrEnum):
    """A question or action of support staff about a player."""

    EXPORT = "export"
    ERASURE = "erasure"


class SupportCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One authenticated call, recorded before it is answered.

    Attributes:
        called_at: by the gateway's clock.
        key_id: the key that signed the call.
        role: of that key.
        pseudonym: the player; None if the game has no such player.
        status: the HTTP status of the answer that the record comes before. An answer may be 503 instead: there may be
            a record of an act that failed, and never an act without a record.
    """

    called_at: datetime
    key_id: str
    role: str
    game: str
    action: SupportAction
    pseudonym: str | None
    status: Annotated[int, msgspec.Meta(ge=100, le=599)]


def encode_call(call: SupportCall) -> bytes:
    """Encode a call as the value of a Kafka record."""
    return msgspec.json.encode(call)


def decode_call(value: bytes) -> SupportCall:
    """Decode the call of a Kafka record's value.

    Raises:
        msgspec.MsgspecError: it is not a support call.
    """
    return msgspec.json.decode(value, type=SupportCall)
