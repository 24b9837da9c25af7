"""Every port that a container listens on: by TLS and with a credential, or in the list of docs/security.md."""

import json
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.stack.platform import Stack
from tools.stack import AUTHORITY, is_encrypted, page, run

PAGE = Path("docs/security.md").read_text(encoding="utf-8")
ANY_OTHER = "any other"
_LOOPBACK_6 = "00000000000000000000000001000000"
REQUEST = b"GET / HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"
POSTGRES, POSTGRES_ASKS_FOR_TLS = 5432, b"\x00\x00\x00\x08\x04\xd2\x16\x2f"


@dataclass(frozen=True, slots=True)
class Response:
    """What a port does with a client that has no credential.

    Attributes:
        is_encrypted: it uses TLS, with a certificate of the internal authority.
        is_closed: it ends the connection without a response, or responds 401 or 403.
    """

    is_encrypted: bool
    is_closed: bool


def response(address: str, port: int) -> Response:
    """Connect to a port as a client without a credential, from the machine, which reaches all networks."""
    trusted = ssl.create_default_context(cafile=AUTHORITY)
    trusted.check_hostname = False
    in_the_clear = Response(is_encrypted=False, is_closed=False)
    with socket.create_connection((address, port), timeout=5) as connection:
        if port == POSTGRES:
            connection.sendall(POSTGRES_ASKS_FOR_TLS)
            if connection.recv(1) != b"S":
                return in_the_clear
        try:
            encrypted = trusted.wrap_socket(connection, server_hostname=address)
        except OSError:
            return in_the_clear
        with encrypted:
            return Response(is_encrypted=True, is_closed=_refuses(encrypted))


def _refuses(connection: ssl.SSLSocket) -> bool:
    try:
        connection.sendall(REQUEST)
        said = connection.recv(200)
    except OSError:
        return True
    return said == b"" or said.split(b" ")[1:2] in ([b"401"], [b"403"])


def listed() -> dict[tuple[str, str], bool]:
    """The page's services and ports, with whether they use TLS."""
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+|any other) \| (yes|no) \|", PAGE.split("\n## TLS\n")[1], re.MULTILINE)
    return {(service, port): tls == "yes" for service, port, tls in rows}


def listening(stack: Stack) -> Iterator[tuple[str, str, int]]:
    """The service, address and port of each socket that other containers can reach."""
    for container in stack.containers():
        if container.state != "running":
            continue
        (state,) = json.loads(run(("docker", "inspect", container.id)))
        address = next(each["IPAddress"] for each in state["NetworkSettings"]["Networks"].values())
        for port in sorted(set(ports_of(state["State"]["Pid"]))):
            yield container.service, address, port


def ports_of(process: int) -> Iterator[int]:
    """The ports of a process's network namespace that are not bound to loopback.

    Source: Linux, proc_pid_net(5): address and port in hexadecimal, state 0A is LISTEN.
    """
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            address, port = local.split(":")
            is_loopback = address.endswith("7F") or address == _LOOPBACK_6
            if state == "0A" and not is_loopback:
                yield int(port, 16)


def test_a_port_answers_in_the_clear_or_without_a_credential_only_if_the_page_lists_it(stack: Stack) -> None:
    if not is_encrypted():
        pytest.skip("TLS=0")
    stack.await_health("ingest")
    found = {(service, str(port)): response(address, port) for service, address, port in listening(stack)}

    closed = {key for key, each in found.items() if each.is_encrypted and each.is_closed}
    open_ports = {
        key if key in listed() else (key[0], ANY_OTHER): each.is_encrypted
        for key, each in found.items()
        if key not in closed
    }
    assert open_ports == listed()
    assert {("kafka", "9092"), ("postgres", "5432"), ("object-store", "9000"), ("prometheus", "9090")} <= closed


def test_sparks_own_connections_need_the_shared_secret_and_are_encrypted(stack: Stack) -> None:
    stack.await_health("ingest-events")
    (application,) = api("")
    settings = dict(api(f"/{application['id']}/environment")["sparkProperties"])

    assert settings["spark.authenticate"] == settings["spark.network.crypto.enabled"] == "true"
    assert settings["spark.authenticate.secret"] == "*********(redacted)"


def api(path: str) -> Any:  # noqa: ANN401 # JSON
    return json.loads(page("INGEST_EVENTS_PORT", f"/api/v1/applications{path}").text)
