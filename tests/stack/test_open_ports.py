"""Every port that a container listens on: by TLS and with a credential, or in the list of docs/security.md."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stack.platform import Stack
from tools.stack import is_encrypted, page, run

PAGE = Path("docs/security.md").read_text(encoding="utf-8")
ANY_OTHER = "any other"
_LOOPBACK_6 = "00000000000000000000000001000000"
# Runs in a container: connects to the ports that its argument names, and prints what each does. A port is closed to
# those without a credential if it ends the connection without an answer, or answers 401 or 403.
PROBE = r"""
import json, socket, ssl, sys
trusted = ssl.create_default_context(cafile="/run/secrets/tls-ca")
trusted.check_hostname = False
REQUEST = b"GET / HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"
def answer(connection):
    try:
        connection.sendall(REQUEST)
        return connection.recv(200)
    except OSError:
        return b""
def probe(host, port):
    connection = socket.create_connection((host, port), timeout=5)
    if port == 5432:
        connection.sendall(b"\x00\x00\x00\x08\x04\xd2\x16\x2f")
        if connection.recv(1) != b"S":
            return {"tls": False, "closed": False}
    try:
        encrypted = trusted.wrap_socket(connection, server_hostname=host)
    except (ssl.SSLError, OSError):
        return {"tls": False, "closed": False}
    said = answer(encrypted)
    refused = said.split(b" ")[1:2] in ([b"401"], [b"403"])
    return {"tls": True, "closed": said == b"" or refused}
print(json.dumps([{**each, **probe(each["address"], each["port"])} for each in json.loads(sys.argv[1])]))
"""


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
        (address,) = {each["IPAddress"] for each in state["NetworkSettings"]["Networks"].values()}
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
    targets = [{"service": service, "address": address, "port": port} for service, address, port in listening(stack)]
    (prober,) = (each.id for each in stack.containers() if each.service == "ingest")
    found = json.loads(run(("docker", "exec", prober, "python", "-c", PROBE, json.dumps(targets))))

    named = {key for key in listed() if key[1] != ANY_OTHER}
    open_ports = {
        (each["service"], port if (each["service"], port := str(each["port"])) in named else ANY_OTHER): each["tls"]
        for each in found
        if not (each["tls"] and each["closed"])
    }
    assert open_ports == listed()
    assert {("kafka", 9092), ("postgres", 5432), ("object-store", 9000), ("delivery", 9115)} <= {
        (each["service"], each["port"]) for each in found if each["tls"] and each["closed"]
    }


def test_sparks_own_connections_need_the_shared_secret_and_are_encrypted(stack: Stack) -> None:
    stack.await_health("ingest-events")
    (application,) = api("")
    settings = dict(api(f"/{application['id']}/environment")["sparkProperties"])

    assert settings["spark.authenticate"] == settings["spark.network.crypto.enabled"] == "true"
    assert settings["spark.authenticate.secret"] == "*********(redacted)"


def api(path: str) -> Any:  # noqa: ANN401 # JSON
    return json.loads(page("INGEST_EVENTS_PORT", f"/api/v1/applications{path}").text)
