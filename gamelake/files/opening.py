"""The query that reads files: the fan-out's, with notifications for records."""

from gamelake.failpoints import Failpoints
from gamelake.fanout.agreement import TableColumns
from gamelake.fanout.batch import FanOut, OpenStream
from gamelake.fanout.beside import Sibling
from gamelake.fanout.plan import DedupPlan
from gamelake.fanout.query import ground
from gamelake.fanout.window import DedupLimits, DedupWindow
from gamelake.files.choosing import Chooser
from gamelake.files.deciding import FilesDecider
from gamelake.files.landing import bucket_of
from gamelake.files.newest_schema import NewestSchema
from gamelake.files.plan import FilesPlan
from gamelake.lake.store import Store
from gamelake.settings.files import FilesSettings
from gamelake.wire.registry import Registry

# Those of events are not read by this stream, which looks into silver.
_MOST_IDENTITIES = 10**9


def file_fan_out(settings: FilesSettings, source: OpenStream, store: Store, cores: int) -> FanOut[DedupPlan]:
    """The batch function of an open stream of notifications.

    Raises:
        ContractError: the games contract is impossible, or not that of the tables that are there; or a rule is.
    """
    reading = settings.reading
    found = ground(reading, source, store)
    # An object is known again by its name and content: objects are the events of this window.
    window = DedupWindow(store, reading.stream, DedupLimits(window=settings.remembered, events=_MOST_IDENTITIES))
    window.resume(source.stream.manifests)
    events = Sibling(store, settings.events_stream)
    decider = FilesDecider(
        plan=FilesPlan(reading=found.plan, landing=settings.landing, schema_id=0, limits=settings.limits),
        columns=TableColumns(found.schemas),
        chooser=Chooser(bucket_of(settings.landing), settings.prefix, settings.overwritten, store),
        newest=NewestSchema(Registry(reading.registry_url), settings.subject),
        rules=found.rules,
        events=events,
        cores=cores,
        remembered=reading.dedup.events,
    )
    return FanOut(source, decider, found.breaker, Failpoints(reading.kill), window, events)
