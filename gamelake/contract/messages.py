"""Messages of other schemas: how the contract says which columns of an event come from which of their fields."""

from enum import StrEnum
from typing import Annotated

import msgspec

FullName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]


class MappedColumn(StrEnum):
    """The columns that all events share and that senders give a value."""

    EVENT_TIME = "event_time"
    EVENT_NAME = "event_name"
    GAME_NAME = "game_name"
    GAMER_ID = "gamer_id"
    SESSION_ID = "session_id"
    PLATFORM = "platform"
    APP_VERSION = "app_version"
    AMOUNT = "amount"
    COUNTRY = "country"
    CURRENCY = "currency"
    PRICE_MICROS = "price_micros"
    ORDER_ID = "order_id"
    STORE = "store"
    PRODUCT_ID = "product_id"
    PAID_UNTIL = "paid_until"
    INSTALL_SOURCE = "install_source"
    INGEST_TIME = "ingest_time"
    EVENT_ID = "event_id"


class MessageSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of an event, from a message type that is not ours.

    Attributes:
        message: the full name of the type, with its package.
        columns: by column, an SQL expression over the fields of the message.
        leave_out: fields of the message that become no columns; the others do.
    """

    message: FullName
    columns: Annotated[dict[MappedColumn, str], msgspec.Meta(min_length=1)]
    leave_out: tuple[str, ...] = ()
