"""A service whose network was cut, and that has another address afterwards, is reached again without an operator.

Docker gives a container that is connected again the first free address; here another container has taken its old one
meanwhile.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.embedded.sending import Sender
from tests.stack.platform import Stack
from tests.support.eventually import eventually
from tools.stack import run

EVENTS = 200
# Free addresses below the one that the service had.
MOST_ADDRESSES = 10
# Two minutes until the health check ends the process, one for what that interrupts, and its start.
HEALS_WITHIN_SECONDS = 300


def address(container: str, network: str) -> str:
    (state,) = json.loads(run(("docker", "inspect", container)))
    return str(state["NetworkSettings"]["Networks"][network]["IPAddress"])


@contextmanager
def taken(wanted: str, network: str, image: str) -> Iterator[None]:
    """Have other containers take the free addresses of a network until one of them has the address."""
    command = ("docker", "run", "--detach", "--rm", "--network", network, "--entrypoint", "sleep", image, "600")
    containers: list[str] = []
    try:
        while wanted not in {address(each, network) for each in containers}:
            assert len(containers) < MOST_ADDRESSES, f"no container gets {wanted}"
            containers.append(run(command).strip())
        yield
    finally:
        run(("docker", "rm", "--force", *containers))


@pytest.mark.parametrize("service", ["spark-master", pytest.param("spark-worker", marks=pytest.mark.slow)])
def test_a_service_whose_network_was_cut_and_restored_is_reached_again(
    service: str, stack: Stack, sender: Sender
) -> None:
    (container,) = (each for each in stack.containers() if each.service == service)
    network = f"{container.project}_data"
    image = run(("docker", "inspect", "--format", "{{.Image}}", container.id)).strip()
    before = address(container.id, network)

    run(("docker", "network", "disconnect", network, container.id))
    with taken(before, network, image):
        run(("docker", "network", "connect", "--alias", service, network, container.id))
        assert address(container.id, network) != before
        # The health check notices, and ends the process; Docker starts it with the new address.
        eventually(lambda: not stack.is_healthy(service), timeout=HEALS_WITHIN_SECONDS)
        stack.await_health(service, timeout=HEALS_WITHIN_SECONDS)
        # A driver that starts now has nothing but the master.
        stack.crash("ingest-events")
        sender.send_events(EVENTS, "Archery Duel")
        sent = set(sender.ledger.event_ids)

        eventually(lambda: sent <= stack.event_ids().keys(), timeout=HEALS_WITHIN_SECONDS)

    for each in (service, "ingest-events"):
        stack.await_health(each)
