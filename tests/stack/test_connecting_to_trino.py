"""The snippets of docs/sql.md and docs/connecting.md for clients of Trino run as they stand there."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from gamelake.model.credentials import read_credentials
from tests.stack.platform import ROOT
from tests.support.pages import snippets

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("stack")]
PAGE = "docs/connecting.md"
DRIVER = ROOT / "build/jdbc/trino-jdbc.jar"
PYTHON_OF_USERS = ROOT / "build/engines/bin/python"
# As the page says: with these variables `requests` trusts other authorities than the connection names.
_OTHER_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def printed_by(code: str, python: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _OTHER_AUTHORITIES}
    run = subprocess.run(
        (str(python), "-c", code), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def java(missing_service: Callable[[str], NoReturn]) -> Iterator[Any]:
    """A JVM with Trino's JDBC driver."""
    if not DRIVER.exists():
        missing_service("Trino's JDBC driver is missing: make test-stack fetches it")
    program = str(Path(os.environ["JAVA_HOME"]) / "bin/java") if "JAVA_HOME" in os.environ else "java"
    port, token = launch_gateway(classpath=str(DRIVER), java_path=program, die_on_exit=True, enable_auth=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    yield gateway.jvm
    gateway.shutdown()


def test_the_snippet_of_trinos_client_runs_as_it_stands_in_the_page() -> None:
    [code] = [each.text for each in snippets("docs/sql.md") if each.language == "python" and "trino" in each.text]

    assert printed_by(code, sys.executable).startswith("[")


@pytest.mark.slow
def test_the_snippet_of_sqlalchemy_runs_as_it_stands_in_the_page(missing_service: Callable[[str], NoReturn]) -> None:
    if not PYTHON_OF_USERS.exists():
        missing_service("build/engines is missing: run make engines")
    [code] = [each.text for each in snippets(PAGE) if "sqlalchemy" in each.text]

    assert printed_by(code, PYTHON_OF_USERS).startswith("[")


def test_the_jdbc_url_of_the_page_connects_the_analyst(java: Any) -> None:  # noqa: ANN401 # py4j has no types
    [url] = re.findall(r"`(jdbc:trino:[^`]+)`", (ROOT / PAGE).read_text(encoding="utf-8"))
    analyst = read_credentials(ROOT / "compose/secrets/trino-analyst", "trino-analyst")
    properties = java.java.util.Properties()
    properties.setProperty("user", analyst.username)
    properties.setProperty("password", analyst.password)

    connection = java.java.sql.DriverManager.getConnection(url.replace("<repository>", str(ROOT)), properties)
    try:
        rows = connection.createStatement().executeQuery("SELECT count(*) FROM events")
        about = connection.getMetaData()

        assert rows.next()
        assert rows.getLong(1) >= 0
        assert about.getDriverVersion() == about.getDatabaseProductVersion()
    finally:
        connection.close()
