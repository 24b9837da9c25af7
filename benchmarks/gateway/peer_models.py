"""The submitted event as pydantic models, for the peer."""

import json
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints

_Text = Annotated[str, StringConstraints(min_length=1)]
# Fields that do not go to the lake unchanged.
_CHANGED_FIELDS: Any = {
    "event_time": True,
    "gamer_id": True,
    "game_name": True,
    "personal": True,
    "event_params": {"device_id": True, "client_event_time": True},
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PeerPersonalData(_Strict):
    """Personal data of the event's message of this name."""

    email: str = ""
    ip_address: str = ""
    player_name: str = ""
    free_text: str = ""


class EventParams(_Strict):
    """Common fields of events."""

    game_keyword: str = ""
    app_name: str = ""
    score_adjustment: int | None = None
    platform: str = ""
    app_version: str = ""
    device_id: str = ""
    client_event_time: AwareDatetime | None = None
    amount: float | None = None
    level: int | None = None
    country: str = ""


class Purchase(_Strict):
    """A purchase."""

    product_id: str = ""
    currency: str = ""
    price_micros: int = 0
    quantity: int = 0


class ErrorReport(_Strict):
    """An error in the game."""

    code: str = ""
    fatal: bool = False
    response_ms: int | None = None


class Event(_Strict):
    """One event."""

    event_id: UUID
    event_name: _Text
    event_time: AwareDatetime
    game_name: str = ""
    gamer_id: _Text
    session_id: str = ""
    event_params: EventParams = EventParams()
    purchase: Purchase | None = None
    experiment_ids: list[str] | None = None
    attributes: dict[str, str] | None = None
    connection_type: (
        Literal[
            "CONNECTION_TYPE_UNSPECIFIED",
            "CONNECTION_TYPE_OFFLINE",
            "CONNECTION_TYPE_WIFI",
            "CONNECTION_TYPE_CELLULAR",
            "CONNECTION_TYPE_WIRED",
        ]
        | None
    ) = None
    error: ErrorReport | None = None
    personal: PeerPersonalData | None = None

    def personal_data(self) -> bytes:
        """The data for the vault, as JSON; empty if there is none."""
        device = self.event_params.device_id
        if self.personal is not None:
            return json.dumps({"device_id": device, **self.personal.model_dump()}).encode()
        return json.dumps({"device_id": device}).encode() if device else b""

    def for_the_lake(self) -> dict[str, Any]:
        """The fields that go to Kafka unchanged."""
        fields = self.model_dump(exclude=_CHANGED_FIELDS, exclude_none=True)
        fields["event_id"] = str(self.event_id)
        return fields


class Batch(_Strict):
    """A body."""

    events: list[Event]
