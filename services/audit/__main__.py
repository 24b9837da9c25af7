"""Copies the audit's topics into the lakehouse until it is stopped, and keeps its tables small.

Settings come from GAMELAKE_* variables (docs/settings.md). On SIGTERM it commits what it has read and ends.
"""

from functools import partial

from gamelake.command import command_parser
from gamelake.contract.games import load_games
from gamelake.delta.comments import Comments
from gamelake.model.naming import AUDIT_QUERIES, AUDIT_SUPPORT_CALLS
from gamelake.observability.metrics.endpoint import registry_of_process, served
from gamelake.program import OK, leave_pandas_out, run, stop_event
from services.audit import query_events, support_calls
from services.audit.copier import AuditCopier
from services.audit.masking import LiteralMask
from services.audit.metrics import AuditMetrics
from services.audit.settings import AuditSettings
from services.audit.tables import AuditTable


def main() -> int:
    """Copy until SIGTERM."""
    command_parser(__doc__).parse_args()
    leave_pandas_out()
    settings = AuditSettings.from_env()
    registry = registry_of_process()
    with served(registry, settings.telemetry):
        AuditCopier(settings, tables(settings), AuditMetrics(registry)).run(stop_event())
    return OK


def tables(settings: AuditSettings) -> list[AuditTable]:
    """Return the audit's tables, each with its topic."""
    games = load_games(settings.games_file).games
    mask = LiteralMask({name for game in games for name in (game.name, *game.match)})
    return [
        AuditTable(
            path=AUDIT_QUERIES,
            topic=settings.queries_topic,
            columns=query_events.COLUMNS,
            comments=Comments("Queries in Trino: a row when one begins, a row when it ends"),
            row=partial(query_events.query_row, mask=mask),
            mask=mask,
        ),
        AuditTable(
            path=AUDIT_SUPPORT_CALLS,
            topic=settings.support_calls_topic,
            columns=support_calls.COLUMNS,
            comments=Comments("Calls of support staff about a player, at the gateway"),
            row=support_calls.call_row,
            mask=mask,
        ),
    ]


if __name__ == "__main__":
    run(main)
