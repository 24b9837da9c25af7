"""The settings of the alert receiver, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.model.options import EndpointTls, endpoint_tls

DEFAULT_PORT = 9094
_HIGHEST_PORT = 65535
# The second is for its own health check.
_CLIENTS = frozenset({"alertmanager", "alert-receiver"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverSettings:
    """The address to listen on, and the file to write.

    Attributes:
        host: empty for all interfaces, as in a container.
        port: 0 for any free port.
        tls: None: the receiver serves HTTP.
        clients: with TLS, the names in the certificates of those who may send alerts and ask for the health.
    """

    file: Path
    host: str
    port: int
    tls: EndpointTls | None = None
    clients: frozenset[str] = _CLIENTS

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        file = variables.get("ALERT_RECEIVER_FILE", "")
        if not file:
            raise SettingsError("ALERT_RECEIVER_FILE is not set: name the file that alerts are written to")
        return cls(
            file=Path(file),
            host=variables.get("ALERT_RECEIVER_HOST", ""),
            port=_port(variables),
            tls=endpoint_tls(Environment(variables), "ALERT_RECEIVER_CERTIFICATE_FILE", "ALERT_RECEIVER_CA_FILE"),
            clients=frozenset(filter(None, variables.get("ALERT_RECEIVER_CLIENTS", "").split(","))) or _CLIENTS,
        )


def _port(variables: Mapping[str, str]) -> int:
    text = variables.get("ALERT_RECEIVER_PORT") or str(DEFAULT_PORT)
    if not (text.isascii() and text.isdigit() and int(text) <= _HIGHEST_PORT):
        raise SettingsError(f"ALERT_RECEIVER_PORT is '{text}'; it must be a port, from 0 to {_HIGHEST_PORT}")
    return int(text)
