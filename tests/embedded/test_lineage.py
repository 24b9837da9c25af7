"""What jobs leave behind can be inspected: their tables' lineage as events and as a page, and the notebooks.

One lakehouse serves all of it, for it takes two jobs to make.
"""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import nbformat
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from deltalake import DeltaTable

from gamelake.observability.lineage.recorded import recorded
from notebooks.running import run
from notebooks.settings import REPOSITORY
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.played import send_played
from tests.embedded.sending import Sender, contract_text
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic, delete_topic
from tools.lineage.page import as_page


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory: pytest.TempPathFactory, kafka: EmbeddedKafka, registry: EmbeddedRegistry) -> Lakehouse:
    """A lakehouse of two games and three days, written by the ingest job and by gold, with their lineage."""
    folder, topic = tmp_path_factory.mktemp("lineage"), f"test-{uuid.uuid4().hex}"
    create_topic(kafka.bootstrap_servers, topic, 2)
    lake = Lakehouse(folder, kafka.bootstrap_servers, registry.url, topic)
    lake.settings |= {
        "GAMELAKE_GAMES_FILE": str(REPOSITORY / "contracts/games.yaml"),
        "GAMELAKE_LINEAGE_SECONDS": "3600",
        "GAMELAKE_LINEAGE_FILE": str(folder / "lineage.jsonl"),
    }
    with SchemaRegistryClient({"url": registry.url}) as client:
        schema_id = int(client.register_schema(f"{topic}-value", Schema(contract_text(1), "PROTOBUF")))
    sender = Sender(kafka.bootstrap_servers, registry.url, topic)
    send_played(sender, schema_id)
    sender.send_bad([b"poison"])
    lake.ingest()
    gold = lake.start("--once", job="gold")
    assert gold.wait() == 0, gold.log_text()[-3000:]
    delete_topic(kafka.bootstrap_servers, topic)
    return lake


def _facet(datasets: list[dict[str, Any]], ending: str, name: str) -> dict[str, Any]:
    """A facet of the dataset whose name ends so."""
    (found,) = (each for each in datasets if each["name"].endswith(ending))
    facet: dict[str, Any] = found["facets"][name]
    return facet


def _events(lakehouse: Lakehouse, job: str) -> list[dict[str, Any]]:
    """The events of a job, oldest first."""
    lines = Path(lakehouse.settings["GAMELAKE_LINEAGE_FILE"]).read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["job"]["name"] == job]


def test_a_gold_table_can_be_followed_back_to_the_topic_and_its_schemas(lakehouse: Lakehouse) -> None:
    first, last = (_events(lakehouse, "ingest_events")[place] for place in (0, -1))
    gold = _events(lakehouse, "gold.archery_duel_player_agg")[-1]

    assert (first["eventType"], last["eventType"], gold["eventType"]) == ("START", "COMPLETE", "COMPLETE")
    (schema,) = _facet(last["inputs"], lakehouse.topic, "gamelake_protobuf")["schemas"]
    assert (schema["subject"], schema["version"]) == (f"{lakehouse.topic}-value", 1)
    for table in ("bronze/events", "silver/events", "silver/archery_duel_events"):
        assert _facet(last["outputs"], table, "gamelake_protobuf")["schemas"] == [schema]
        assert _facet(last["outputs"], table, "version")["datasetVersion"] == "0"
    silver = DeltaTable(str(lakehouse.directory / "lake/silver/archery_duel_events"))
    columns = _facet(last["outputs"], "archery_duel_events", "schema")["fields"]
    assert [column["name"] for column in columns] == [field.name for field in silver.schema().fields]
    sources = _facet(gold["outputs"], "gold/archery_duel_player_agg", "columnLineage")["fields"]
    assert [each["field"] for each in sources["session_count"]["inputFields"]] == ["event_name"]


def test_the_page_of_a_lakehouse_names_its_tables(lakehouse: Lakehouse) -> None:
    page = as_page(recorded(lakehouse.store))

    for table in ("bronze/events", "silver/bingo_harbor_events", "gold/bingo_harbor_player_agg"):
        assert table in page


@pytest.mark.parametrize(
    ("name", "charts"),
    [
        ("analyst", 5),
        pytest.param("engineer", 4, marks=pytest.mark.slow),
        pytest.param("streaming", 1, marks=pytest.mark.slow),
    ],
)
def test_a_notebook_runs_to_its_end_and_draws(lakehouse: Lakehouse, tmp_path: Path, name: str, charts: int) -> None:
    output = tmp_path / f"{name}.ipynb"

    book = run(REPOSITORY / f"notebooks/{name}.ipynb", output, lakehouse.environment())

    given = [each for cell in book.cells if cell.cell_type == "code" for each in cell.outputs]
    assert sum("image/png" in each.get("data", {}) for each in given) == charts
    assert [each for each in given if each.output_type == "error"] == []
    assert nbformat.read(output, as_version=4).cells == book.cells  # type: ignore[no-untyped-call] # it says not
    texts = " ".join(each["data"].get("text/plain", "") for each in given if "data" in each)
    if name == "engineer":
        assert "1 of 1 batches reconcile" in texts
        assert ", 0 of them different from silver" in texts
        assert f"topic/{lakehouse.topic}" in texts
    if name == "streaming":
        assert re.search(r"'(\d+) events counted, of \1 in silver'", texts)
