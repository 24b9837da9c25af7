"""Compaction pauses, so that other processes get the cores."""

import time
from functools import partial

from gamelake.maintenance.compaction_run import paced


def test_after_each_piece_others_have_the_cores_for_so_many_times_as_long() -> None:
    rests: list[float] = []
    pieces = [partial(time.sleep, seconds) for seconds in (0.01, 0.03)]

    started = time.perf_counter()
    done = list(paced(pieces, 3, rests.append))
    took = time.perf_counter() - started

    assert len(done) == len(rests) == 2
    assert rests[0] >= 0.03
    assert rests[1] >= 0.09
    assert sum(rests) <= 3 * took


def test_what_a_piece_gave_is_there_before_the_rest() -> None:
    steps: list[str] = []

    for done in paced([partial(str, "compacted")] * 2, 1, lambda _: steps.append("rested")):
        steps.extend((done, "reported"))

    assert steps == ["compacted", "reported", "rested"] * 2
