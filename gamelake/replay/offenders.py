"""What a replay does with rows that break a rule: into the quarantine, once, whoever had them lost."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gamelake.fanout.chunk import Target
from gamelake.fanout.sorting import event_days
from gamelake.naming import QUARANTINE, game_table
from gamelake.quality.judging import Offenders
from gamelake.quality.quarantine import as_quarantine
from gamelake.replay.presence import Presence
from gamelake.silver.events import common_columns


@dataclass(frozen=True, slots=True)
class Quarantining:
    """Chooses the rows that neither silver nor the quarantine has; `targets` are the tables that may get rows."""

    presence: Presence
    targets: frozenset[str]

    def rows(self, offenders: Offenders, records: pa.RecordBatch) -> Iterator[tuple[Target, pa.RecordBatch]]:
        """The quarantine's rows, by their days."""
        found = as_quarantine(offenders, common_columns(offenders.rows), records)
        games, days = offenders.games.to_numpy(zero_copy_only=False), event_days(found)
        for game in sorted(set(games)):
            table = game_table(game)
            if self.targets and table not in self.targets:
                continue
            for day in np.unique(days[games == game]):
                target = Target(QUARANTINE, int(day))
                rows = found.filter(pa.array((games == game) & (days == day)))
                yield target, self._missing(table, target, rows)

    def _missing(self, table: str, target: Target, rows: pa.RecordBatch) -> pa.RecordBatch:
        events = self.presence.events(table, rows)
        partitions = rows.column("kafka_partition").to_numpy()
        missing = self.presence.missing(table, target.date, events, partitions)
        missing &= self.presence.missing(QUARANTINE, target.date, events, partitions)
        return rows.filter(pa.array(missing))
