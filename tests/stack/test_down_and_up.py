"""`make down` in the middle of a load, and `make up` again: what Kafka has confirmed is in the tables, once."""

import shutil
import subprocess

import pytest

from tests.embedded.sending import Sender
from tests.stack.platform import ROOT, Stack
from tests.support.eventually import eventually

EVENTS = 3_000
_PATIENCE_SECONDS = 600


def make(target: str) -> None:
    """Run a target as a person does."""
    done = subprocess.run(
        [str(shutil.which("make")), target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_a_stack_that_went_down_and_came_up_has_lost_nothing(stack: Stack, sender: Sender) -> None:
    before = stack.event_ids()
    sender.send_events(EVENTS, "Archery Duel")

    make("down")
    left = [each.service for each in stack.containers()]
    make("up")
    sender.send_events(EVENTS, "Bingo Harbor")

    assert left == []
    sent = set(sender.ledger.event_ids)
    eventually(lambda: sent <= stack.event_ids().keys(), timeout=180)
    after = stack.event_ids()
    assert {event_id for event_id in sent if after[event_id] != 1} == set()
    assert before - after == {}
