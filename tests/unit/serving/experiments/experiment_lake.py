"""A lakehouse with the events of one game that has an experiment, and its tables as gold's job keeps them."""

import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from gamelake.contract.experiments import ExperimentSpec
from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_schema_json
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.privacy.row_eraser import RowEraser
from gamelake.scans.player_rows import PlayerFilter, player_table, player_tables
from gamelake.serving.experiments.refresh import ExperimentRefresh, ExperimentsRefreshed, load_contracts
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt

GAMES_FILE = Path("contracts/games.yaml")
GAME, TITLE, EXPERIMENT = "kart_rumble", "Kart Rumble", "new_shop"
START = datetime(2026, 6, 15, tzinfo=UTC)
CONTROL, SHOP = "control", "new_shop"
_EXPOSURE = pa.struct([("experiment", pa.string()), ("variant", pa.string())])
_COMMON = COMMON_SCHEMA.append(pa.field("event_date", pa.date32()))
_SCHEMA = _COMMON.append(pa.field("exposure", _EXPOSURE))
SPEC = msgspec.convert(
    {
        "name": EXPERIMENT,
        "game": GAME,
        "description": "?",
        "variants": [{"name": CONTROL, "share": 0.5}, {"name": SHOP, "share": 0.5}],
        "start": START.date(),
        "end": START.date() + timedelta(days=9),
        "primary": "bookings",
        "guardrails": {"payers": "must_not_fall", "sessions_begun": "must_not_fall"},
    },
    ExperimentSpec,
)


@dataclass(frozen=True, kw_only=True)
class GameEvent:
    """One event, `hours` after the start of the experiment."""

    hours: float
    gamer: str
    name: str = "level_completed"
    amount: float | None = None
    variant: str | None = None
    experiment: str = EXPERIMENT

    @property
    def at(self) -> datetime:
        return START + timedelta(hours=self.hours)


def exposure(hours: float, gamer: str, variant: str, experiment: str = EXPERIMENT) -> GameEvent:
    return GameEvent(hours=hours, gamer=gamer, name="session_start", variant=variant, experiment=experiment)


def purchase(hours: float, gamer: str, amount: float) -> GameEvent:
    return GameEvent(hours=hours, gamer=gamer, name="purchase", amount=amount)


@dataclass
class ExperimentLake:
    """Silver, gold's player days, and the tables of experiments; `happened` is all that was appended.

    The game has its days in `zone`, and it is noon there on the day `today`.
    """

    folder: Path
    experiments: Sequence[ExperimentSpec] = (SPEC,)
    today: date = START.date() + timedelta(days=20)
    happened: list[GameEvent] = field(default_factory=list)
    commits: int = 0
    zone: str = "UTC"
    refresh: ExperimentRefresh = field(init=False)

    def __post_init__(self) -> None:
        """Begin as gold's job does."""
        contracts = load_contracts(self.games_file)
        assert contracts is not None
        contracts = replace(contracts, experiments=self.experiments)
        self.refresh = ExperimentRefresh(self.store, contracts, now=self._noon)

    @property
    def games_file(self) -> Path:
        """The games contract, in which the game has its zone."""
        if self.zone == "UTC":
            return GAMES_FILE
        folder = self.folder / "contracts"
        shutil.copytree(GAMES_FILE.parent, folder, dirs_exist_ok=True)
        file = folder / GAMES_FILE.name
        game = f"  - name: {GAME}\n"
        file.write_text(file.read_text().replace(game, f"{game}    time_zone: {self.zone}\n"))
        return file

    def day(self, moment: datetime) -> date:
        """The game's day at a moment."""
        return moment.astimezone(ZoneInfo(self.zone)).date()

    def _noon(self) -> datetime:
        return datetime.combine(self.today, time(12), ZoneInfo(self.zone))

    @property
    def store(self) -> Store:
        return Store(Location(uri=f"file://{self.folder}"))

    def append(self, happened: Sequence[GameEvent]) -> None:
        """Commit events to the game's silver table and to that of all games."""
        rows = [
            {
                "event_time": each.at,
                "event_name": each.name,
                "game_name": TITLE,
                "gamer_id": each.gamer,
                "session_id": f"{each.gamer}-1",
                "amount": each.amount,
                "ingest_time": each.at,
                "event_date": each.at.date(),
                "exposure": each.variant and {"experiment": each.experiment, "variant": each.variant},
            }
            for each in happened
        ]
        table = pa.Table.from_pylist(rows, schema=_SCHEMA)
        self._commit(f"silver/{GAME}_events", table)
        self._commit(SILVER_EVENTS, table.drop_columns(["exposure"]))
        self.happened.extend(happened)

    def run(self) -> ExperimentsRefreshed:
        """Refresh gold's player days, then the experiments."""
        contract = load_gold(self.games_file)
        used = [each for each in contract.aggregates if each.name == "all_player_days"]
        for table in GoldTables(self.store, msgspec.structs.replace(contract, aggregates=tuple(used))).now():
            done = attempt(table)
            assert isinstance(done, Refreshed), done.reason
        return self.refresh()

    def take(self, *happened: GameEvent) -> ExperimentsRefreshed:
        """Append and refresh."""
        self.append(happened)
        return self.run()

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table of experiments."""
        found: list[dict[str, Any]] = (
            DeltaTable(self.folder / "gold" / f"experiment_{table}").to_pyarrow_table().to_pylist()
        )
        return found

    def last(self, metric: str, experiment: str = EXPERIMENT) -> dict[str, tuple[float, ...]]:
        """Players, total and sum of squares of each variant on the last day."""
        found = [each for each in self.rows("statistics") if each["metric"] == metric]
        found = [each for each in found if each["experiment"] == experiment]
        newest = max(str(each["event_date"]) for each in found)
        return {
            str(each["variant"]): (each["players"], each["total"], each["total_squares"])
            for each in found
            if str(each["event_date"]) == newest
        }

    def erase(self, gamer: str) -> None:
        """Erase a player from all tables, sources first, as the job does."""
        names = sorted((each.name for each in player_tables(self.store)), key=lambda name: name.startswith("gold/"))
        for name in names:
            found = player_table(self.store, name)
            assert found is not None
            RowEraser(self.store, found, PlayerFilter(frozenset({gamer})), "run").erase()
        self.happened = [each for each in self.happened if each.gamer != gamer]

    def _commit(self, table: str, rows: pa.Table) -> None:
        days = sorted(set(rows.column("event_date").to_pylist()))
        files = tuple(
            write_rows(
                self.store,
                table,
                rows.filter(pc.field("event_date") == day).drop_columns(["event_date"]),
                {"event_date": str(day)},
            )
            for day in days
        )
        entry = TableFiles(
            table=table, partition_by=("event_date",), schema=delta_schema_json(rows.schema), files=files
        )
        with DeltaTables(self.store.location) as tables:
            tables.append(entry, BatchTransaction("test", self.commits))
        self.commits += 1


def expected(lake: ExperimentLake) -> dict[tuple[date, str, str], tuple[float, ...]]:
    """Compute the statistics of `SPEC` event by event: players, total, squares, before, squares, crossed, excluded."""
    found: dict[tuple[date, str, str], tuple[float, ...]] = {}
    first, met = _exposures(lake)
    days = [START.date() + timedelta(days=number) for number in range(10)]
    for day in days:
        for metric in SPEC.metrics:
            for variant in (CONTROL, SHOP):
                of_day = [gamer for gamer, (at, _) in first.items() if lake.day(at) <= day]
                players = [gamer for gamer in of_day if len(met[gamer]) == 1 and first[gamer][1] == variant]
                pairs = [_values(lake, metric, gamer, first[gamer][0], day) for gamer in players]
                found[day, metric, variant] = (
                    len(players),
                    sum(now for _, now in pairs),
                    sum(now * now for _, now in pairs),
                    sum(before for before, _ in pairs),
                    sum(before * before for before, _ in pairs),
                    sum(before * now for before, now in pairs),
                    sum(len(met[gamer]) > 1 for gamer in of_day),
                )
    return found


def _exposures(lake: ExperimentLake) -> tuple[dict[str, tuple[datetime, str]], dict[str, set[str]]]:
    first, met = dict[str, tuple[datetime, str]](), defaultdict[str, set[str]](set)
    for each in sorted(lake.happened, key=lambda each: each.at):
        within = START.date() <= lake.day(each.at) < START.date() + timedelta(days=10)
        if each.variant in {CONTROL, SHOP} and each.experiment == EXPERIMENT and within:
            first.setdefault(each.gamer, (each.at, str(each.variant)))
            met[each.gamer].add(str(each.variant))
    return first, met


def _values(lake: ExperimentLake, metric: str, gamer: str, exposed: datetime, day: date) -> tuple[float, float]:
    own = [each for each in lake.happened if each.gamer == gamer]
    earliest = lake.day(exposed) - timedelta(days=14)
    before = [each for each in own if earliest <= lake.day(each.at) < lake.day(exposed)]
    after = [each for each in own if each.at > exposed and lake.day(each.at) <= day]
    return _value(metric, before), _value(metric, after)


def _value(metric: str, happened: Sequence[GameEvent]) -> float:
    amounts = [each.amount for each in happened if each.name == "purchase" and each.amount is not None]
    if metric == "sessions_begun":
        return float(sum(each.name == "session_start" for each in happened))
    return float(sum(amounts)) if metric == "bookings" else float(bool(amounts))
