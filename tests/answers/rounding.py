"""Numbers of an answer that the question rounds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rounded:
    """A number that stands in the answer with some digits; a half goes up in one engine and down in the next."""

    value: float
    digits: int

    def __eq__(self, answered: object) -> bool:
        """Return True if an answer is this number, rounded."""
        if not isinstance(answered, (int, float)):
            return NotImplemented
        return bool(abs(answered - self.value) <= 0.5 / 10**self.digits + 1e-9)

    def __hash__(self) -> int:
        """The same for all: equality is not by value alone."""
        return 0


def cents(value: float) -> Rounded:
    """An amount in US dollars."""
    return Rounded(value, 2)


def share(part: float, whole: float) -> Rounded | None:
    """A part of a whole, to four digits; None of nothing."""
    return Rounded(part / whole, 4) if whole else None
