"""The known play as the tables of a lakehouse: silver as the fan-out writes it, gold by the job that makes it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path

import msgspec
import pyarrow as pa
from deltalake import write_deltalake

from gamelake.contract.games import GamesContract
from gamelake.delta.columns import MICROSECONDS_UTC
from gamelake.layers.bronze import BRONZE_SCHEMA
from gamelake.layers.dead_letters import dead_letter_schema
from gamelake.layers.silver import COMMON_SCHEMA, EVENT_DATE
from gamelake.objects.store import Location, Store
from gamelake.serving.experiments.refresh import ExperimentRefresh, load_contracts
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.runner import FailedRefresh, GoldTables, attempt
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.serving.money.acquisition_cost import import_cost
from gamelake.serving.money.imported import create_table
from gamelake.serving.money.rates import import_rates
from gamelake.serving.money.store_reports import TABLE as STORE_SALES
from gamelake.serving.money.store_reports import import_report
from gamelake.serving.players.contract import SEGMENTS_FILE, usable_segments
from gamelake.serving.players.refresh import SegmentRefresh
from tests.answers.figures import FIGURES
from tests.answers.of_cohorts import acquisition_cost
from tests.answers.of_money import RATES, google_play_report
from tests.answers.of_one_game import DEAD_LETTERS, EXPERIMENT, EXPERIMENT_START, variant_of
from tests.answers.play import GAMES, TODAY, WITHOUT_RESOURCES, Event

ROOT = Path(__file__).parents[2]
_DAY = pa.field(EVENT_DATE, pa.date32())
SILVER_SCHEMA = pa.schema([*COMMON_SCHEMA, _DAY])
GAME_SCHEMA = pa.schema(
    [
        *COMMON_SCHEMA,
        pa.field("device_id", pa.string()),
        pa.field("client_event_time", MICROSECONDS_UTC),
        pa.field("level", pa.int64()),
        pa.field("purchase", pa.struct([pa.field("product_id", pa.string()), pa.field("quantity", pa.int64())])),
        pa.field("experiment_ids", pa.list_(pa.field("element", pa.string()))),
        pa.field("exposure", pa.struct([pa.field("experiment", pa.string()), pa.field("variant", pa.string())])),
        pa.field("error", pa.struct([pa.field("code", pa.string()), pa.field("fatal", pa.bool_())])),
        pa.field("load_ms", pa.int64()),
        pa.field(
            "resource",
            pa.struct([pa.field("item", pa.string()), pa.field("change", pa.int64()), pa.field("reason", pa.string())]),
        ),
        _DAY,
    ]
)


def contract() -> GamesContract:
    return load_gold(ROOT / "contracts/games.yaml")


def make_lakehouse(location: Location) -> None:
    """Write all tables that the questions read."""
    for path, rows, partition in _tables():
        write_deltalake(
            location.child(path), rows, partition_by=[partition], storage_options=dict(location.options) or None
        )
    import_rates(Store(location), {(currency, date(2026, 1, 1)): usd for currency, usd in RATES.items()})
    create_table(Store(location), STORE_SALES)
    for game in GAMES:
        import_report(Store(location), google_play_report(game))
    import_cost(Store(location), acquisition_cost())
    results = [attempt(refresh) for refresh in GoldTables(Store(location), contract()).now()]
    failed = [each.reason for each in results if isinstance(each, FailedRefresh)]
    assert not failed, failed
    kpis = KpiRefresh(Store(location), now=_noon)
    assert kpis().failed == ()
    _make_segments(location, kpis)
    _make_experiments(location)


def _make_segments(location: Location, kpis: KpiRefresh) -> None:
    segments = usable_segments(ROOT / "contracts" / SEGMENTS_FILE, contract())
    assert not segments.problems
    refresh = SegmentRefresh(Store(location), contract(), kpis)
    refresh.use(segments.segments, ())
    assert refresh().failed == {}


def _make_experiments(location: Location) -> None:
    """Write the tables of the game's experiment, as if it had begun in the play."""
    contracts = load_contracts(ROOT / "contracts/games.yaml")
    assert contracts is not None
    [experiment] = (each for each in contracts.experiments if each.name == EXPERIMENT)
    experiment = msgspec.structs.replace(experiment, start=EXPERIMENT_START)
    contracts = replace(contracts, experiments=[experiment])
    assert ExperimentRefresh(Store(location), contracts, now=_noon)().failed == ()


def _noon() -> datetime:
    return datetime.combine(TODAY, time(12), UTC)


def _tables() -> Iterable[tuple[str, pa.Table, str]]:
    yield "silver/events", pa.Table.from_pylist([row_of(event) for event in FIGURES.events], SILVER_SCHEMA), EVENT_DATE
    for name, game in GAMES.items():
        rows = [row_of(event) for event in FIGURES.events if event.game_name == name]
        table = pa.Table.from_pylist(rows, GAME_SCHEMA)
        if name == WITHOUT_RESOURCES:
            table = table.drop_columns(["resource", "load_ms"])
        yield f"silver/{game}_events", table, EVENT_DATE
    letters = [
        {"ingest_date": day, "reason": reason, "detail": detail, "kafka_timestamp": moment}
        for day, reason, detail, moment in DEAD_LETTERS
    ]
    schema = pa.schema([*dead_letter_schema(BRONZE_SCHEMA), pa.field("ingest_date", pa.date32())])
    yield "dead_letters/events", pa.Table.from_pylist(letters, schema), "ingest_date"


def row_of(event: Event) -> dict[str, object]:
    """An event as a row of its game's table; silver.events has fewer columns."""
    row = {name: getattr(event, name, None) for name in GAME_SCHEMA.names}
    row[EVENT_DATE] = event.day
    if event.product_id is not None:
        row["purchase"] = {"product_id": event.product_id, "quantity": event.quantity}
    if (variant := variant_of(event)) is not None:
        row["exposure"] = {"experiment": EXPERIMENT, "variant": variant}
    if event.fatal is not None:
        row["error"] = {"code": "broken", "fatal": event.fatal}
    if event.resource is not None:
        row["resource"] = dict(zip(("item", "change", "reason"), event.resource, strict=True))
    return row
