"""The lineage of the stack's jobs can be queried in Trino, and drawn with a key that only reads."""

from dataclasses import replace

from gamelake.objects.store import Store, shared_credentials
from gamelake.observability.lineage.recorded import recorded
from tests.stack.platform import SECRETS, Stack
from tests.stack.trino_users import ANALYST, COMMITTED_SECONDS, ENGINEER, await_answer, fill
from tools.lineage.page import as_page

INGEST = "SELECT 1 FROM lineage.events WHERE job = 'ingest_events' AND contains(outputs, 'silver/archery_duel_events')"


def test_an_engineer_asks_which_job_writes_a_table_and_an_analyst_may_not(stack: Stack) -> None:
    fill(["silver.archery_duel_events"])

    await_answer(ENGINEER, INGEST, timeout=COMMITTED_SECONDS)

    assert ANALYST.refusal(INGEST) == "PERMISSION_DENIED"


def test_the_stacks_lineage_is_drawn_with_a_key_that_only_reads(stack: Stack) -> None:
    fill(["silver.archery_duel_events"])
    await_answer(ENGINEER, INGEST, timeout=COMMITTED_SECONDS)
    keys = shared_credentials(SECRETS / "object-store-trino", "default")
    location = replace(stack.lakehouse, options={**stack.lakehouse.options, **keys})

    page = as_page(recorded(Store(location)))

    assert "silver/archery_duel_events" in page
    assert "topic/events" in page
