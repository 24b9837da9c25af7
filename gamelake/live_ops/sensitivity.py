"""How readily signals are given: the numbers behind the detector, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What counts as not as it should be.

    Attributes:
        tolerated: falls to this part of what is expected are no signal, however sure.
        sureness: a signal's probability by chance is under exp(-sureness), given a fall to `tolerated`.
        recovered: a fall is over at this part of what is expected.
        windows: so many last minutes are looked at, the shortest first.
        warm_up: minutes of a game before anything is said of it.
        common: games with an expectation that it takes to tell a fall of the whole platform from one of a game.
        error_factor: an error rate so many times that of the other versions is no signal.
        error_recovered: and at so many times it is over.
        new_version: minutes for which a version counts as one that has just appeared.
        longest: minutes after which what is there counts as usual.
    """

    tolerated: float = 0.7
    sureness: float = 12.0
    recovered: float = 0.85
    windows: tuple[int, ...] = (2, 3, 5, 10, 20, 40)
    warm_up: int = 60
    common: int = 4
    error_factor: float = 2.0
    error_recovered: float = 1.5
    new_version: int = 24 * 60
    longest: int = 24 * 60
