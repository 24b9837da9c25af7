"""Tells the telemetry what the KPI query's batches tell."""

from collections.abc import Mapping

from gamelake.kpis.day_tables import DayTable
from gamelake.kpis.figures import Newest
from gamelake.kpis.fold import Folded
from gamelake.telemetry.harmless import harmless
from gamelake.telemetry.kpis import KpiTelemetry


class Told:
    """An observer of batches; begins with what the tables, which are open, hold already."""

    def __init__(self, to: KpiTelemetry, tables: Mapping[str, DayTable]) -> None:
        self._to = to
        self._newest = Newest()
        self._show_what_is_there(tables)

    @harmless
    def folded(self, folded: Folded, seconds: float) -> None:
        """The tables have a batch."""
        self._to.folded(folded.late, seconds)
        self._to.show(self._newest.in_rows(folded.rows))

    @harmless
    def _show_what_is_there(self, tables: Mapping[str, DayTable]) -> None:
        self._to.show(self._newest.in_tables(tables))
