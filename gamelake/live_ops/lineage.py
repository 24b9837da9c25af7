"""What the query of live operations tells of its lineage: one topic in, two topics and three tables out."""

from gamelake.lineage.flow import Flow, Kind, Place, Topic, tables
from gamelake.live_ops.player_table import PLAYER_STATE
from gamelake.live_ops.watch_tables import MINUTES, SIGNALS
from gamelake.settings.live_ops import LiveOpsSettings


def flow(settings: LiveOpsSettings, query: str, kind: Kind) -> Flow:
    """The lineage of the whole query; `query` is its id."""
    servers, reading = settings.reading.kafka.bootstrap_servers, settings.reading
    published = (Place(what=Topic(servers, name)) for name in (settings.player_topic, settings.signal_topic))
    return Flow(
        job="live_ops",
        description="Keeps each player's state and the signals about games, for those who act on them.",
        kind=kind,
        query=query,
        inputs=(Place(what=Topic(servers, reading.topic)),),
        outputs=(*published, *tables(PLAYER_STATE, MINUTES, SIGNALS)),
    )
