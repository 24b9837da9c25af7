"""Reads an answer: what it says of a batch, if it is one that settles it."""

import json
from http import HTTPStatus
from typing import Any

from .outcome import Outcome, Refusal, Rejection
from .parcel import Parcel
from .transport import Reply

_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_LONGEST_RETRY_AFTER = 3600.0


def outcome_of(parcels: tuple[Parcel, ...], reply: Reply | None) -> Outcome | None:
    """What an answer makes of a batch; None if the batch must be sent again."""
    if reply is None or reply.status in _AGAIN:
        return None
    told = _object_in(reply.body)
    if reply.status == HTTPStatus.OK:
        return _looked_at(parcels, told)
    if not HTTPStatus.BAD_REQUEST <= reply.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    text = str(told.get("error", "the gateway gives no reason"))
    return Outcome(parcels=parcels, accepted=0, refusal=Refusal(reply.status, text))


def seconds_until_again(reply: Reply | None) -> float:
    """What `Retry-After` says in seconds; its other form, a date, is left to the back-off."""
    text = reply.headers.get("retry-after", "") if reply is not None else ""
    return min(float(text), _LONGEST_RETRY_AFTER) if text.isascii() and text.isdigit() else 0.0


def _looked_at(parcels: tuple[Parcel, ...], told: dict[str, Any]) -> Outcome | None:
    try:
        rejections = tuple(Rejection(each["index"], each["reason"], each.get("field", "")) for each in told["rejected"])
        accepted = int(told["accepted"])
    except (KeyError, TypeError, ValueError, AttributeError):
        accepted, rejections = -1, ()
    if accepted + len(rejections) != sum(parcel.count for parcel in parcels):
        # The page of a hotel's network is a 200 too: what does not name the batch's events has not taken them.
        return None
    return Outcome(parcels=parcels, accepted=accepted, rejections=rejections)


def _object_in(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
