"""The page has every recorded topic, table, job and edge, and is self-contained."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from gamelake.model.options import LineageOptions
from gamelake.objects.store import Location, Store
from gamelake.observability.lineage.graph import Graph
from gamelake.observability.lineage.recorded import recorded, recorded_in
from tests.unit.observability.lineage.platform import lakehouse_with_lineage
from tests.unit.observability.lineage.tables import emit, events, lake
from tests.unit.observability.lineage.test_emitted_lineage import flow
from tools.lineage.__main__ import main
from tools.lineage.drawing import picture
from tools.lineage.layout import CARD_WIDTH, LineageView, arrange, cards_of
from tools.lineage.page import PageData, as_page

GAMES = ("archery", "bingo", "kart_rumble")


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """A lakehouse of three games."""
    return lakehouse_with_lineage(tmp_path_factory.mktemp("lineage"), GAMES)


def pictures(page: str) -> dict[LineageView, ET.Element]:
    found = [ET.fromstring(text) for text in re.findall(r"<svg .*?</svg>", page, re.DOTALL)]  # noqa: S314 # our own
    return {LineageView(svg.attrib["class"]): svg for svg in found}


def nodes_of(svg: ET.Element) -> list[str]:
    return sorted(
        name for row in svg.iter("g") if "data-nodes" in row.attrib for name in row.attrib["data-nodes"].split(";")
    )


def edges_of(svg: ET.Element) -> list[tuple[str, ...]]:
    drawn = [edge for path in svg.iter("path") for edge in path.attrib["data-edges"].split(";")]
    return sorted(tuple(edge.split(">")) for edge in drawn)


def graph_of(location: Location) -> tuple[set[str], set[tuple[str, str]]]:
    """Nodes and edges as the events themselves have them."""
    nodes, edges = set(), set()
    for event in events(location):
        job = f"job {event['job']['name']}"
        nodes.add(job)
        for side in ("inputs", "outputs"):
            for dataset in event[side]:
                name = dataset["facets"].get("symlinks", {"identifiers": [{"name": f"topic/{dataset['name']}"}]})
                known_as = name["identifiers"][0]["name"]
                nodes.add(known_as)
                edges.add((known_as, job) if side == "inputs" else (job, known_as))
    return nodes, edges


@pytest.mark.parametrize("view", LineageView)
def test_each_node_and_each_edge_of_the_events_is_drawn_once(location: Location, view: LineageView) -> None:
    nodes, edges = graph_of(location)

    svg = pictures(as_page(recorded(Store(location))))[view]

    assert nodes_of(svg) == sorted(nodes)
    assert edges_of(svg) == sorted(edges)
    assert len(nodes) == 7 + 5 * len(GAMES)


def test_nodes_of_a_family_share_a_card(location: Location) -> None:
    graph = Graph.of(recorded(Store(location)))

    families = {family.name: sorted(family.members) for family in graph.families()}

    assert families == dict.fromkeys(
        (
            "silver/<game>_events",
            "gold/<game>_player_agg",
            "gold/<game>_daily_agg",
            "job gold.<game>_player_agg",
            "job gold.<game>_daily_agg",
        ),
        sorted(GAMES),
    )


@pytest.mark.parametrize("view", LineageView)
def test_cards_do_not_overlap_and_edges_lead_to_the_right(location: Location, view: LineageView) -> None:
    graph = Graph.of(recorded(Store(location)))

    layout = arrange(cards_of(graph, view), graph.edges)

    positions = list({position.card.name: position for position in layout.positions.values()}.values())
    for one in positions:
        assert 0 <= one.x <= layout.width - CARD_WIDTH
        assert 0 <= one.y <= layout.height - one.card.height
        for other in positions:
            if other is not one and other.x == one.x:
                assert one.y + one.card.height <= other.y or other.y + other.card.height <= one.y
    assert all(layout.of(source).x < layout.of(target).x for source, target in graph.edges)


def test_a_cycle_is_drawn_too(tmp_path: Path) -> None:
    location = lake(tmp_path)
    emit(location, flow("forget_player", "silver/events", inputs=("silver/events",)), job="forget_player")

    svg = picture(Graph.of(recorded(Store(location))), LineageView.EXPANDED)

    assert edges_of(svg) == [("job forget_player", "silver/events"), ("silver/events", "job forget_player")]


def test_the_page_has_columns_sql_versions_and_schemas(location: Location) -> None:
    page = as_page(recorded(Store(location)))

    text = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert text is not None
    nodes = msgspec.json.decode(text[1], type=PageData).nodes
    gold = nodes["gold/archery_player_agg"]
    made_of = {column.name: column.made_of for column in gold.columns}
    assert ("Delta version", "0") in gold.facts
    assert made_of["gamer_id"] == "gamer_id  (gamer_id)"
    assert "where event_name" in made_of["session_count"]
    assert "FROM silver.archery_events" in nodes["job gold.archery_player_agg"].sql
    assert ("program", "jobs/gold.py") in nodes["job gold.archery_player_agg"].facts
    assert ("query", "q-1") in nodes["job ingest_events"].facts
    schema = ("Protobuf schema", "id 7, game-events-value version 3")
    assert schema in nodes["topic/game-events"].facts
    # Gold read this table later, and knows no schema of it.
    assert schema in nodes["silver/archery_events"].facts


def test_the_page_is_self_contained_and_escapes_texts_of_events(tmp_path: Path) -> None:
    location = lake(tmp_path)
    emit(location, flow("</script><script>alert(1)"))

    page = as_page(recorded(Store(location)))

    assert re.findall(r"""(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org)""", page) == []
    assert page.count("</script>") == 2
    assert nodes_of(pictures(page)[LineageView.EXPANDED]) == [
        "gold/kpi_dau",
        "job </script><script>alert(1)",
        "silver/events",
    ]


def test_the_newest_event_of_each_job_counts_and_older_nodes_stay(tmp_path: Path) -> None:
    location, file = lake(tmp_path), tmp_path / "lineage.jsonl"
    for outputs in (("gold/a",), ("gold/b",)):
        emit(location, flow("kpis.dau", *outputs), options=LineageOptions(file=file))

    for found in (recorded(Store(location)), recorded_in(file)):
        assert Graph.of(found).nodes.keys() == {"job kpis.dau", "silver/events", "gold/a", "gold/b"}
    # The end of each run says all that the start said.
    assert [event.event_type for event in recorded(Store(location))] == ["COMPLETE", "COMPLETE"]


def test_the_program_prints_the_uri_of_the_page(
    location: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "pages" / "lineage.html"
    monkeypatch.setenv("GAMELAKE_LAKEHOUSE", location.uri)

    assert main(["--output", str(page)]) == 0

    assert capsys.readouterr().out == f"{page.as_uri()}\n"
    assert "gold/bingo_player_agg" in page.read_text()


def test_a_lakehouse_without_lineage_gets_a_page_that_says_so(tmp_path: Path) -> None:
    page = as_page(recorded(Store(lake(tmp_path))))

    assert "No lineage is recorded yet" in page
    assert [nodes_of(svg) for svg in pictures(page).values()] == [[], []]
