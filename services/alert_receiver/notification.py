"""Parses the notifications of Alertmanager's webhook into one line per alert."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Self


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
        """The line, without a line break."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)


def alert_lines(body: bytes, received_at: datetime) -> tuple[AlertLine, ...]:
    """Parse the alerts of a notification, in their order.

    Raises:
        MalformedNotificationError: the body is not a notification.
    """
    try:
        notification = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedNotificationError("the body is not JSON") from error
    try:
        alerts = _member(notification, "alerts")
    except (KeyError, TypeError) as error:
        raise MalformedNotificationError("the body has no alerts") from error
    if not isinstance(alerts, list):
        raise MalformedNotificationError("the alerts are no list")
    return tuple(AlertLine.of(alert, received_at.isoformat(timespec="milliseconds")) for alert in alerts)


def _member(thing: object, name: str) -> object:
    if not isinstance(thing, dict):
        raise TypeError(f"no object that could have '{name}'")
    return thing[name]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError("labels and annotations are objects")
    return {_text(key): _text(each) for key, each in value.items()}
