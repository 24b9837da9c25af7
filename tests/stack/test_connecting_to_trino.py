"""The snippet of docs/sql.md for Trino's Python client runs as it stands there."""

import os
import subprocess
import sys

import pytest

from tests.pages import snippets
from tests.stack.platform import ROOT

pytestmark = pytest.mark.stack
# As the page says: with these variables `requests` trusts other authorities than the connection names.
_OTHER_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.mark.usefixtures("stack")
def test_the_snippet_of_trinos_client_runs_as_it_stands_in_the_page() -> None:
    [code] = [each.text for each in snippets("docs/sql.md") if each.language == "python" and "trino" in each.text]

    environment = {name: value for name, value in os.environ.items() if name not in _OTHER_AUTHORITIES}
    run = subprocess.run(
        (sys.executable, "-c", code), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("[")
