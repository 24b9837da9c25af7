"""A container reaches containers of its own networks only, and the networks are those of docs/security.md."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.stack.platform import Stack
from tests.stack.test_open_ports import ports_of
from tools.stack import run

PAGE = Path("docs/security.md").read_text(encoding="utf-8")
# Runs in a container: prints which of the addresses and ports that it gets accept a connection.
CONNECT = r"""
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def accepts(target):
    try:
        socket.create_connection(target, timeout=2).close()
    except OSError:
        return False
    return True
targets = [tuple(each) for each in json.loads(sys.argv[1])]
with ThreadPoolExecutor(32) as pool:
    print(json.dumps(list(pool.map(accepts, targets))))
"""
# A dropped packet and a port that is closed look alike, so each target listens.
FEWEST_TARGETS = 24


@dataclass(frozen=True, slots=True)
class Member:
    """A running container, its networks, its address in each, and the ports on which it accepts connections."""

    id: str
    service: str
    addresses: dict[str, str]
    ports: tuple[int, ...]


def members(stack: Stack) -> list[Member]:
    found = []
    for container in stack.containers():
        if container.state != "running":
            continue
        (state,) = json.loads(run(("docker", "inspect", container.id)))
        networks = state["NetworkSettings"]["Networks"]
        addresses = {name.removeprefix(f"{container.project}_"): each["IPAddress"] for name, each in networks.items()}
        ports = tuple(sorted(set(ports_of(state["State"]["Pid"]))))
        found.append(Member(container.id, container.service, addresses, ports))
    return found


def listed() -> dict[str, set[str]]:
    """The page's networks, each with its services."""
    rows = re.findall(r"^\| `([a-z]+)` \| ((?:`[a-z-]+`(?:, )?)+) \|", PAGE.split("\n## Networks\n")[1], re.MULTILINE)
    return {network: set(re.findall(r"`([a-z-]+)`", services)) for network, services in rows}


def reached(client: Member, targets: list[tuple[str, str, int]]) -> set[tuple[str, str, int]]:
    """Those of the targets (service, address, port) to which a container can connect."""
    argument = json.dumps([[address, port] for _, address, port in targets])
    accepted = json.loads(run(("docker", "exec", client.id, "python3", "-c", CONNECT, argument)))
    return {target for target, accepts in zip(targets, accepted, strict=True) if accepts}


def test_a_container_reaches_the_containers_of_its_own_networks_and_no_other(stack: Stack) -> None:
    stack.await_health("ingest-events")
    running = members(stack)
    targets = [
        (each.service, address, each.ports[0]) for each in running if each.ports for address in each.addresses.values()
    ]
    own_address = {(each.service, address) for each in running for address in each.addresses.values()}
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda client: reached(client, targets), running))

    assert len(targets) >= FEWEST_TARGETS
    for client, found in zip(running, results, strict=True):
        networks = set(client.addresses)
        expected = {
            (each.service, address, each.ports[0])
            for each in running
            if each.ports
            for network, address in each.addresses.items()
            if network in networks or (client.service, address) in own_address
        }
        assert found == expected, client.service


def test_the_networks_have_the_members_that_the_page_lists(stack: Stack) -> None:
    running: dict[str, set[str]] = {}
    for member in members(stack):
        for network in member.addresses:
            running.setdefault(network, set()).add(member.service)

    documented = listed()
    assert set(running) == set(documented) - {"identity"}
    for network, services in running.items():
        assert services <= documented[network], network
