"""What can be wrong with the KPI query's source and tables; each says what must happen next."""

from gamelake.errors import DataLossError, StartupError


class KpiTableError(StartupError):
    """A KPI table holds rows that the KPI query has not written."""


class SourceChangedError(DataLossError):
    """Rows that were counted are gone, or are back: what has been counted no longer follows from silver."""


class SourceRevisedError(SourceChangedError):
    """A person had rows set back or brought back, and wants them counted as they are now."""
