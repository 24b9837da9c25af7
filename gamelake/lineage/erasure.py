"""What an erasure tells of its lineage: the tables that it took rows out of, which it both reads and writes."""

from gamelake.lineage.flow import Flow, Kind, tables
from gamelake.maintenance.erasure_records import ErasureDone


def flow_of(done: ErasureDone) -> Flow | None:
    """The lineage of an erasure; None if it took no rows out of any table."""
    changed = [each.table for each in done.tables if each.rows]
    if not changed:
        return None
    return Flow(
        job="forget_player",
        description="Takes the rows of people who are to be forgotten out of all tables.",
        kind=Kind.BATCH,
        inputs=tables(*changed),
        outputs=tables(*changed),
    )
