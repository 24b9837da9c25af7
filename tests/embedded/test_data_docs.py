"""Data Docs are served by HTTPS, for clients with a certificate of the internal authority."""

import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.eventually import eventually
from tools.embedded.ports import HOST, accepts_connections, free_port

REPOSITORY = Path(__file__).parents[2]


class RunningDocs:
    """A server of a directory with one page, and the certificates of it and of an operator."""

    def __init__(self, folder: Path) -> None:
        self._certificates = folder / "certificates"
        directory = CertificateDirectory(self._certificates, ChangeLog("certificates"))
        directory.update(["data-docs"], datetime.now(UTC), clients=["operator"])
        pages = folder / "pages"
        pages.mkdir()
        (pages / "index.html").write_text("the day is valid")
        (folder / "outside.html").write_text("not to be served")
        self.port = free_port()
        options = ("--port", str(self.port), "--certificate", str(self._certificates / "data-docs.pem"))
        self.process = subprocess.Popen(
            (sys.executable, "-m", "services.data_docs", str(pages), *options, "--clients", str(self._authority)),
            cwd=REPOSITORY,
            env=os.environ,
        )

    @property
    def _authority(self) -> Path:
        return self._certificates / "ca.pem"

    def page(self, path: str, *, certificate: str = "") -> str:
        context = ssl.create_default_context(cafile=str(self._authority))
        if certificate:
            context.load_cert_chain(self._certificates / f"{certificate}.pem")
        url = f"https://{HOST}:{self.port}{path}"
        with urllib.request.urlopen(url, timeout=10, context=context) as response:
            return str(response.read().decode())


@pytest.fixture
def docs(tmp_path: Path) -> Iterator[RunningDocs]:
    running = RunningDocs(tmp_path)
    try:
        eventually(lambda: accepts_connections(running.port))
        yield running
    finally:
        running.process.terminate()
        assert running.process.wait(10) == 0


def test_an_operator_reads_the_pages_and_no_other_file(docs: RunningDocs) -> None:
    assert docs.page("/index.html", certificate="operator") == "the day is valid"
    with pytest.raises(HTTPError, match="404"):
        docs.page("/../outside.html", certificate="operator")


def test_a_client_without_a_certificate_reads_nothing_and_others_are_served_after_it(docs: RunningDocs) -> None:
    with pytest.raises((URLError, OSError)):
        docs.page("/index.html")
    assert docs.page("/", certificate="operator") == "the day is valid"
