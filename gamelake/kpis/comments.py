"""What the KPI tables and their columns mean, for whoever meets them in an engine's catalogue."""

from gamelake.kpis.definitions import KpiTable
from gamelake.kpis.meanings import MEANINGS
from gamelake.lake.comments import Comments

_TABLES = {
    "kpi_hourly": "Events and bookings by hour, game, platform and app version; late events correct it for a time.",
    "kpi_late": "Events by the hour in which they happened: those that arrived, were counted, and came too late.",
    "kpi_players": "The first day of each player of each game; of large games a sample of the players.",
    "kpi_player_days": "Who played on which day; of large games a sample of the players.",
    "kpi_sessions": "Sessions by day; of games with many a sample. One that crosses midnight is one on each day.",
    "kpi_daily": "Each day of each game: events, bookings, players, payers and sessions.",
    "kpi_active_players": "Distinct players of each day, and of 7 and 30 days that end with it.",
    "kpi_retention": "New players by their first day, and how many of them came back 1, 7 and 30 days later.",
}


def kpi_comments(table: KpiTable) -> Comments:
    """A KPI table's description and its columns' meanings."""
    return Comments(_TABLES[table.name], {name: MEANINGS[name] for name in table.schema.names})
