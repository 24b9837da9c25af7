"""The vault's tables, step by step, in the dialects of its databases.

It knows file names and types; a database that has taken a step says so itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The limit of one event's encrypted personal data; the database itself refuses more, from every process.
MOST_SEALED_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Dialect:
    """The different names that databases have for the same things."""

    bytes: str
    counter: str


def migrations(dialect: Dialect) -> Iterator[tuple[int, str]]:
    """Yield all steps in order: a number from 1, and statements that end with semicolons."""
    for file in sorted(Path(__file__).parent.glob("[0-9]*.sql")):
        script = file.read_text(encoding="utf-8")
        yield (
            int(file.name[:4]),
            script.format(bytes=dialect.bytes, counter=dialect.counter, most_sealed=MOST_SEALED_BYTES),
        )
