"""Funnels: for any history, each step is reached as often as a walk over the events says."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.funnels import FunnelSpec, FunnelStep, FunnelUnit
from gamelake.contract.games import GameSpec
from gamelake.delta.listing import table_names
from gamelake.model.errors import ContractError
from gamelake.objects.store import Location, Store
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.funnels import funnel_sql
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import View, load_views
from tests.support.silver_events import BEGINNING, Event, Silver
from tests.unit.properties import examples

SQL = Path(__file__).parents[4] / "sql"
GAMES_FILE = SQL.parent / "contracts/games.yaml"
VIEWS = load_views(SQL / "views", GAMES_FILE)
NAMES = ("session_start", "level_completed", "purchase", "smoke_test")

EVENTS = st.lists(
    st.builds(
        Event,
        # Few moments, so that some are equal; around two midnights.
        at=st.sampled_from([0, 1, 2, 86_340, 86_399, 86_400, 86_460, 172_799, 172_800]).map(
            lambda second: BEGINNING + timedelta(seconds=second)
        ),
        name=st.sampled_from(NAMES),
        game=st.sampled_from(["Archery", "Bingo"]),
        gamer=st.sampled_from(["ann", "bob", None]),
        session=st.sampled_from(["1", "2", "", None]),
        version=st.sampled_from(["1.0", "1.1"]),
        amount=st.sampled_from([None, 0.5]),
    ),
    min_size=1,
    max_size=25,
)
FUNNELS = st.builds(
    FunnelSpec,
    name=st.just("tested"),
    description=st.just("What is tested."),
    by=st.sampled_from(FunnelUnit),
    within=st.sampled_from(["1 second", "2 minutes", "23 hours", "1 day", "25 hours"]),
    # The same event may be several steps.
    steps=st.lists(
        st.tuples(st.sampled_from(NAMES[:3]), st.sampled_from(["", "amount IS NOT NULL"])), min_size=2, max_size=4
    ).map(lambda steps: tuple(FunnelStep(name=f"s{n}", event=e, where=where) for n, (e, where) in enumerate(steps))),
)
Rows = Mapping[tuple[date, str, str, int], tuple[int, int, int]]


def by_hand(events: Sequence[Event], funnel: FunnelSpec) -> Rows:
    """Walk through the events of each player or session."""
    walks: dict[tuple[str, ...], list[Event]] = {}
    for event in sorted(events, key=lambda each: each.at):
        unit = (event.game, event.gamer or "", event.session or "")
        if event.name != "smoke_test" and event.gamer and (funnel.by is FunnelUnit.PLAYER or event.session):
            walks.setdefault(unit[:2] if funnel.by is FunnelUnit.PLAYER else unit, []).append(event)
    depths: Counter[tuple[date, str, str, int]] = Counter()
    for (game, *_), walk in walks.items():
        for (day, version), entered in _entries(walk, funnel.steps[0]).items():
            depths[day, game, version, _depth(walk, funnel, entered)] += 1
    entries = {key[:3] for key in depths}
    rows = {}
    for day, game, version in entries:
        reached = [
            sum(depths[day, game, version, depth] for depth in range(step, len(funnel.steps) + 1))
            for step in range(1, len(funnel.steps) + 1)
        ]
        for step, (before, count) in enumerate(zip([reached[0], *reached], reached, strict=False), 1):
            rows[day, game, version, step] = (reached[0], before, count)
    return rows


def _entries(walk: Sequence[Event], first: FunnelStep) -> Mapping[tuple[date, str], datetime]:
    entries: dict[tuple[date, str], datetime] = {}
    for event in walk:
        if _matches(event, first):
            entries.setdefault((event.at.date(), event.version), event.at)
    return entries


def _depth(walk: Sequence[Event], funnel: FunnelSpec, entered: datetime) -> int:
    depth, moment = 1, entered
    for event in walk:
        is_in_time = moment < event.at <= entered + funnel.window
        if depth < len(funnel.steps) and is_in_time and _matches(event, funnel.steps[depth]):
            depth, moment = depth + 1, event.at
    return depth


def _matches(event: Event, step: FunnelStep) -> bool:
    return event.name == step.event and (not step.where or event.amount is not None)


def rows_of(lake: Location, view: View) -> list[dict[str, object]]:
    games = (GameSpec(name="archery", match=("Archery",)),)
    relations = Relations(table_names(Store(lake)), (*VIEWS, view), games)
    sql = f"SELECT * FROM {view.name}"  # noqa: S608 # a name
    rows: list[dict[str, object]] = answer(sql, relations.read_by(sql), lake).to_pylist()
    return rows


def view_of(funnel: FunnelSpec) -> View:
    return View(f"gold.funnel_{funnel.name}", "", (), funnel_sql(funnel))


@examples(60)
@given(events=EVENTS, funnel=FUNNELS)
def test_a_funnel_counts_what_a_walk_over_the_events_counts(events: Sequence[Event], funnel: FunnelSpec) -> None:
    with TemporaryDirectory() as folder:
        silver = Silver(Path(folder))
        silver.append(events)

        rows = rows_of(silver.location, view_of(funnel))

    keys = ("event_date", "game_name", "app_version", "step")
    answered = {
        tuple(row[key] for key in keys): (row["entered"], row["reached_before"], row["reached"]) for row in rows
    }
    assert answered == by_hand(events, funnel)
    assert {(row["step"], row["step_name"]) for row in rows} <= {
        (number, step.name) for number, step in enumerate(funnel.steps, 1)
    }


def test_a_funnel_of_one_game_can_have_a_condition_on_its_own_fields(tmp_path: Path) -> None:
    lake = Location(uri=tmp_path.as_uri())
    gained = [("ann", 1, "gems"), ("bob", 1, "coins"), ("ann", 2, "gems"), ("bob", 2, "gems")]
    rows = [
        {
            "event_time": BEGINNING + timedelta(minutes=minute),
            "event_date": BEGINNING.date(),
            "event_name": "gained",
            "game_name": "Archery",
            "gamer_id": gamer,
            "app_version": "1.0",
            "resource": {"item": item},
        }
        for gamer, minute, item in gained
    ]
    table = pa.Table.from_pylist(rows)
    moments = table.column("event_time").cast(pa.timestamp("us", "UTC"))
    write_deltalake(lake.child("silver/archery_events"), table.set_column(0, "event_time", moments))
    step = {"event": "gained", "where": "resource.item = 'gems'"}
    funnel = FunnelSpec(
        name="gems",
        description="Gems.",
        game="archery",
        by=FunnelUnit.PLAYER,
        within="1 hour",
        steps=(FunnelStep(name="one", **step), FunnelStep(name="two", **step)),
    )

    found = {row["step"]: (row["entered"], row["reached"]) for row in rows_of(lake, view_of(funnel))}

    assert found == {1: (2, 2), 2: (2, 1)}


FILE = """funnels:
  - name: one
    description: One.
    by: player
    within: 1 hour
    steps:
      - { name: began, event: session_start }
      - { name: bought, event: purchase, where: amount > 1 }
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("by: player", "by: device", 4, "Invalid enum value 'device'"),
        ("within: 1 hour", "within: 1 year", 5, "regex"),
        ("where: amount > 1", "where: price > 1", 8, "reads 'price', which silver.game_events lacks"),
        ("where: amount > 1", "where: amount >", 8, "is not a condition"),
        ("where: amount > 1", "where: count(*) > 1", 8, "must be a condition over one event"),
        ("where: amount > 1", "where: (SELECT true)", 8, "must be a condition over one event"),
        ("name: bought", "name: began", 8, "the step 'began' is there twice"),
        ("by: player", "game: chess2\n    by: player", 4, "'chess2' is not a game of games.yaml"),
        ("event: purchase", "event: it's", 8, "regex"),
        ("    steps:", "    step:", 6, "unknown key 'step'"),
    ],
)
def test_a_wrong_funnel_is_an_error_with_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, problem: str
) -> None:
    (tmp_path / "silver").mkdir()
    (tmp_path / "silver/game_events.sql").write_text((SQL / "views/silver/game_events.sql").read_text())
    file = tmp_path / "funnels.yaml"
    file.write_text(FILE)
    assert [view.name for view in load_views(tmp_path, GAMES_FILE)] == ["silver.game_events", "gold.funnel_one"]
    file.write_text(FILE.replace(old, new))

    with pytest.raises(ContractError) as raised:
        load_views(tmp_path, GAMES_FILE)

    assert str(raised.value).startswith(f"{file}:{line}: ")
    assert problem in str(raised.value)
