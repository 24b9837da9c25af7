"""Does a stream go on: how long ago was its last batch, what waits for it, and does Kafka still hold what it needs?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from gamelake.maintenance.findings import Finding, failed, passed, warned

_NEED = "streams"
# Longer than a batch takes, its pause, and a restart.
_STANDS_STILL = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """What is known of a stream; what Kafka did not tell is None.

    Attributes:
        trouble: what is wrong with its checkpoint, and the remedy; empty if nothing.
        waiting: records that Kafka holds beyond its last batch.
        lost: records that Kafka no longer holds, and that it has yet to read.
        same_topic: whether the topic is the one that it counts in.
    """

    name: str
    batches: int
    last_batch_at: datetime | None
    trouble: str = ""
    waiting: int | None = None
    lost: int = 0
    same_topic: bool = True


def waiting_and_lost(positions: Mapping[int, int], held: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """Records beyond a stream's positions, and those before that are gone, by what Kafka holds (first, end)."""
    waiting = sum(max(end - max(positions.get(each, first), first), 0) for each, (first, end) in held.items())
    lost = sum(max(first - positions[each], 0) for each, (first, _) in held.items() if each in positions)
    return waiting, lost


def examine_stream(state: StreamState, now: datetime) -> Iterator[Finding]:
    """One stream."""
    rebuild = "python -m jobs.rebuild_checkpoint"
    if state.trouble:
        yield failed(_NEED, f"{state.name}: {state.trouble}", "")
    if not state.same_topic:
        yield failed(_NEED, f"{state.name}: its topic was deleted and made again", f"{rebuild} --new-topic")
    if state.lost:
        yield failed(
            _NEED, f"{state.name}: Kafka no longer holds {state.lost:,} records that it has yet to read",
            f"{rebuild} --skip-lost gives them up, on record",
        )  # fmt: skip
    if state.last_batch_at is None:
        yield warned(_NEED, f"{state.name}: no batch yet", "send it something: make smoke, make demo-stack")
        return
    age = now - state.last_batch_at
    told = f"{state.name}: batch {state.batches - 1:,}, {_told(age)} ago"
    if state.waiting is None:
        yield passed(_NEED, told)
    elif state.waiting and age > _STANDS_STILL:
        yield failed(_NEED, f"{told}, and {state.waiting:,} records wait", "look at its log: make logs S=ingest-events")
    else:
        yield passed(_NEED, f"{told}; {state.waiting:,} records wait")


def _told(age: timedelta) -> str:
    seconds = age.total_seconds()
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3_600:.1f} h"  # noqa: PLR2004 # what reads well
