"""What jobs tell of their lineage, and where to."""

from datetime import timedelta
from pathlib import Path

from gamelake.lineage.options import LineageOptions
from gamelake.settings.environment import Environment


def lineage_options(env: Environment) -> LineageOptions:
    """How often a job tells of itself, and the file that takes the events besides the table."""
    file = env.optional("GAMELAKE_LINEAGE_FILE", "")
    return LineageOptions(
        every=timedelta(seconds=env.number("GAMELAKE_LINEAGE_SECONDS", 3_600, 0, 86_400)),
        file=Path(file) if file else None,
    )
