"""The lineage of the streaming queries: the KPI tables by their SQL, live operations by its topics and tables."""

from gamelake.model.naming import SILVER_EVENTS
from gamelake.observability.lineage.flow import FlowEnd, RunKind, TableDataset, TopicDataset
from gamelake.observability.lineage.job_flows import flow, flows
from gamelake.serving.kpis.definitions import ALL
from gamelake.serving.live_ops.settings import LiveOpsSettings
from tests.unit.test_settings import REQUIRED


def paths(places: tuple[FlowEnd, ...]) -> list[str]:
    """The tables among places."""
    return [place.what.path for place in places if isinstance(place.what, TableDataset)]


def topics(places: tuple[FlowEnd, ...]) -> list[str]:
    """The topics among places."""
    return [place.what.name for place in places if isinstance(place.what, TopicDataset)]


def test_each_kpi_table_comes_from_silver_in_the_end_and_from_no_circle() -> None:
    made_of = {paths(each.outputs)[0]: set(paths(each.inputs)) for each in flows("q", RunKind.STREAMING)}

    known = {SILVER_EVENTS}
    while ready := {table for table, sources in made_of.items() if table not in known and sources <= known}:
        known |= ready
    assert known == {SILVER_EVENTS, *(table.path for table in ALL)}
    assert all(made_of.values())


def test_the_tables_that_a_kpi_is_made_of_are_those_that_its_sql_names() -> None:
    made_of = {each.job: paths(each.inputs) for each in flows("q", RunKind.STREAMING)}

    assert made_of["kpis.kpi_hourly"] == [SILVER_EVENTS]
    assert made_of["kpis.kpi_late"] == [SILVER_EVENTS, "gold/kpi_hourly"]
    assert "gold/kpi_players" in made_of["kpis.kpi_retention"]


def test_live_operations_read_one_topic_and_write_two() -> None:
    emitter = flow(LiveOpsSettings.from_env(REQUIRED), "q", RunKind.STREAMING)

    assert (topics(emitter.inputs), paths(emitter.inputs)) == (["events"], [])
    assert topics(emitter.outputs) == ["live-ops.player-state", "live-ops.signals"]
    assert len(paths(emitter.outputs)) == 3
