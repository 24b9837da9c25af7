"""Parses the notifications of Alertmanager's webhook into one line per alert."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Self

import msgspec


class MalformedNotificationError(Exception):
    """The body is not a notification of Alertmanager; sending it again does not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLine:
    """One alert of a notification.

    Attributes:
        ends_at: the end of the alert; a time in year 1 while it is firing.
    """

    received_at: str
    status: str
    alertname: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: str
    ends_at: str

    @classmethod
    def of(cls, alert: object, received_at: str) -> Self:
        """Parse one alert.

        Raises:
            MalformedNotificationError: it is malformed.
        """
        try:
            labels = _texts(_member(alert, "labels"))
            return cls(
                received_at=received_at,
                status=_text(_member(alert, "status")),
                alertname=labels.get("alertname", ""),
                labels=labels,
                annotations=_texts(_member(alert, "annotations")),
                starts_at=_text(_member(alert, "startsAt")),
                ends_at=_text(_member(alert, "endsAt")),
            )
        except (KeyError, TypeError) as error:
            raise MalformedNotificationError(f"an alert is malformed: {error}") from error

    def to_json(self) -> str:
        """Render the line, without a line break."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)


class _Notification(msgspec.Struct):
    """A notification whose alerts are parsed one by one: all of them take ten times the body's size."""

    alerts: list[msgspec.Raw]


def alert_lines(body: bytes, received_at: datetime) -> Iterator[AlertLine]:
    """Parse the alerts of a notification, in their order; the first one is returned when all have been checked.

    Raises:
        MalformedNotificationError: the body is not a notification.
    """
    try:
        alerts = msgspec.json.decode(body, type=_Notification).alerts
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedNotificationError(f"the body is not JSON with a list of alerts: {error}") from error
    at = received_at.isoformat(timespec="milliseconds")
    for alert in alerts:
        _line(alert, at)
    return (_line(alert, at) for alert in alerts)


def _line(alert: msgspec.Raw, received_at: str) -> AlertLine:
    try:
        return AlertLine.of(msgspec.json.decode(alert), received_at)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedNotificationError(f"an alert is not JSON: {error}") from error


def _member(thing: object, name: str) -> object:
    if not isinstance(thing, dict):
        raise TypeError(f"no object that could have '{name}'")
    return thing[name]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError("labels and annotations are objects")
    return {_text(key): _text(each) for key, each in value.items()}
