"""What a round without Spark would do to each table, and what it would have to leave; one look at each log for both."""

from collections.abc import Iterator, Sequence

from deltalake.exceptions import DeltaError

from gamelake.errors import GamelakeError
from gamelake.lake.file_entries import live_files
from gamelake.lake.tables import open_table
from gamelake.maintenance.bins import bins
from gamelake.maintenance.compaction_round import (
    CompactionRound,
    Due,
    Left,
    NotCompacted,
    Outlook,
    Place,
    left,
    outlook,
)


def outlooks_here(
    of_all: CompactionRound, most_bytes: int, names: Sequence[str] = ()
) -> Iterator[Outlook | Left | NotCompacted]:
    """What waits in each table, of all or of those that are named; bins of `most_bytes` at most are packed here."""
    for table in sorted(names) or of_all.tables():
        try:
            yield from _of_table(of_all, table, most_bytes)
        except (DeltaError, GamelakeError) as error:
            yield NotCompacted(table=table, reason=f"its log can't be read: {error}")


def _of_table(of_all: CompactionRound, table: str, most_bytes: int) -> Iterator[Outlook | Left]:
    compaction = of_all.of(table)
    files = live_files(open_table(compaction.location, table))
    here = Due(compaction, bins(files, compaction.rule.within(most_bytes)))
    anywhere = Due(compaction, bins(files, compaction.rule))
    # Also where nothing is to be done: whoever follows what waits must see that it came to nothing.
    yield outlook(here, Place.HERE)
    if anywhere.files > here.files:
        yield left(of_all.kind, anywhere, here)
