"""The analyst's notebook, over the stack's Trino, as the analyst."""

import os
import re
from pathlib import Path

import pytest

from notebooks.running import run
from notebooks.settings import REPOSITORY
from tests.embedded.played import send_played
from tests.embedded.sending import contract_text
from tests.stack.platform import Stack, stack_sender
from tests.stack.trino_users import ANALYST, COMMITTED_SECONDS, await_answer
from tools.stack import trino_credentials, url

NOTEBOOK = REPOSITORY / "notebooks/analyst.ipynb"


# Without Trino it runs in a test that is not slow.
@pytest.mark.slow
def test_the_analysts_notebook_runs_over_trino(stack: Stack, tmp_path: Path) -> None:
    sender = stack_sender()
    send_played(sender, sender.register(contract_text(1)))
    for name in re.findall(r'question\(\\"(\w+)\\"\)', NOTEBOOK.read_text()):
        await_answer(ANALYST, (REPOSITORY / f"sql/questions/{name}.sql").read_text(), timeout=COMMITTED_SECONDS)
    # Before the environment is read, to which it adds the authority.
    address = url("TRINO_PORT")
    environment = {
        **{name: value for name, value in os.environ.items() if name != "GAMELAKE_LAKEHOUSE"},
        "GAMELAKE_TRINO_URL": address,
        "GAMELAKE_TRINO_CREDENTIALS_FILE": str(trino_credentials("analyst")),
        "PYTHONPATH": str(REPOSITORY),
    }

    notebook = run(NOTEBOOK, tmp_path / "analyst.ipynb", environment)

    given = [each for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs]
    assert sum("image/png" in each.get("data", {}) for each in given) == 5
    assert f"Trino at {address.partition('//')[2]}, as analyst" in given[0].text
