"""When a round is due next, from what is known of its runs; nothing here looks at a clock."""

from datetime import datetime, timedelta
from hashlib import sha256

from gamelake.contracts.schedule import ScheduledRound
from gamelake.maintenance.round_records import RoundRecord

FIRST_RETRY = timedelta(minutes=15)
_LONGEST_RETRY = timedelta(hours=6)
_DOUBLINGS = 5


def due_at(scheduled: ScheduledRound, record: RoundRecord, seed: str) -> datetime:
    """The moment from which on it should run: its next turn, or sooner if the last run failed.

    Turns that were missed are one: the moment is in the past, and a run brings it into the future.
    """
    regular = next_turn(scheduled, record.begun_at or record.known_since, seed)
    if not record.failures:
        return regular
    pause = min(FIRST_RETRY * (1 << min(record.failures - 1, _DOUBLINGS)), _LONGEST_RETRY)
    return min(regular, record.last_moment + pause)


def next_turn(scheduled: ScheduledRound, moment: datetime, seed: str) -> datetime:
    """The first turn that is later than a moment, jitter and all."""
    # A turn's jitter may have carried it past the moment.
    turn = scheduled.cadence.after(moment - scheduled.jitter)
    while turn + jitter_of(scheduled, turn, seed) <= moment:
        turn += scheduled.cadence.period
    return turn + jitter_of(scheduled, turn, seed)


def jitter_of(scheduled: ScheduledRound, turn: datetime, seed: str) -> timedelta:
    """How much later a turn begins: the same whoever asks and however often."""
    drawn = sha256(f"{seed}/{scheduled.name}/{turn.isoformat()}".encode()).digest()
    return scheduled.jitter * (int.from_bytes(drawn[:4]) / 2**32)
