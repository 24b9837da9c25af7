"""Names that a person chooses from a list: a misspelt one is an error with the list and the nearest name."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeVar

Chosen = TypeVar("Chosen", bound=str)

# Comparing takes time with the square of the length.
_LONGEST = 64


def allowed(known: Iterable[str], given: str = "") -> str:
    """Return the names to choose from as a text, with the one that is nearest to a misspelt name.

    Args:
        known: the names, in the order of the text.
        given: the misspelt name.
    """
    names = list(known)
    listed = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names)
    nearest = get_close_matches(given[:_LONGEST].lower(), names, 1, 0.7)
    return f"{listed}; did you mean {nearest[0]}?" if nearest else listed


def chosen(known: Iterable[Chosen], given: str) -> Chosen:
    """Return the name that a person has given.

    Raises:
        ValueError: there is no such name; the message has those that there are.

    Example:
        >>> chosen(["trino", "duckdb", "spark"], "duck")
        Traceback (most recent call last):
        ValueError: it must be trino, duckdb or spark; did you mean duckdb?
    """
    names = list(known)
    for name in names:
        if name == given:
            return name
    raise ValueError(f"it must be {allowed(names, given)}")
