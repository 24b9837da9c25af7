"""The lineage of KPIs, which are computed from gold's tables, and of live operations: its topics and tables."""

from gamelake.observability.lineage.flow import FlowEnd, RunKind, TableDataset, TopicDataset
from gamelake.observability.lineage.job_flows import flow, kpi_flows
from gamelake.serving.kpis.sources import SOURCES
from gamelake.serving.kpis.tables import ALL
from gamelake.serving.live_ops.settings import LiveOpsSettings
from tests.unit.test_settings import REQUIRED


def paths(places: tuple[FlowEnd, ...]) -> list[str]:
    return [place.what.path for place in places if isinstance(place.what, TableDataset)]


def topics(places: tuple[FlowEnd, ...]) -> list[str]:
    return [place.what.name for place in places if isinstance(place.what, TopicDataset)]


def test_each_kpi_table_comes_from_gold_in_the_end_and_from_no_circle() -> None:
    made_of = {paths(each.outputs)[0]: set(paths(each.inputs)) for each in kpi_flows(RunKind.STREAMING)}

    known = gold = {source.path for source in SOURCES}
    while ready := {table for table, sources in made_of.items() if table not in known and sources <= known}:
        known = known | ready
    assert known == gold | {table.path for table in ALL}
    assert all(made_of.values())


def test_live_operations_read_one_topic_and_write_two() -> None:
    emitter = flow(LiveOpsSettings.from_env(REQUIRED), "q", RunKind.STREAMING)

    assert (topics(emitter.inputs), paths(emitter.inputs)) == (["events"], [])
    assert topics(emitter.outputs) == ["live-ops.player-state", "live-ops.signals"]
    assert len(paths(emitter.outputs)) == 3
