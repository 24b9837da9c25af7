"""Data Docs are served by HTTPS, for clients with a certificate of the internal authority."""

import http.client
import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.support.eventually import eventually
from tests.support.process_table import peak_mib
from tools.embedded.ports import HOST, accepts_connections, free_port

REPOSITORY = Path(__file__).parents[2]


class RunningDocs:
    """A server of a directory with one page, and the certificates of it and of an operator."""

    def __init__(self, folder: Path) -> None:
        self._certificates = folder / "certificates"
        directory = CertificateDirectory(self._certificates, ChangeLog("certificates"))
        directory.update(["data-docs", "spark-worker"], datetime.now(UTC), clients=["operator"])
        self._pages = pages = folder / "pages"
        pages.mkdir()
        self.write("index.html", "the day is valid")
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

    def write(self, name: str, text: str) -> None:
        (self._pages / name).write_text(text)

    def size(self, path: str) -> int:
        """The size of a page, read in pieces."""
        with self._opened(path, "operator") as response:
            return sum(len(piece) for piece in iter(lambda: response.read(2**16), b""))

    def page(self, path: str, *, certificate: str = "") -> str:
        with self._opened(path, certificate) as response:
            return str(response.read().decode())

    def _opened(self, path: str, certificate: str) -> http.client.HTTPResponse:
        context = ssl.create_default_context(cafile=str(self._authority))
        if certificate:
            context.load_cert_chain(self._certificates / f"{certificate}.pem")
        url = f"https://{HOST}:{self.port}{path}"
        response: http.client.HTTPResponse = urllib.request.urlopen(url, timeout=60, context=context)
        return response


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


def test_a_certificate_of_a_service_opens_no_page(docs: RunningDocs) -> None:
    with pytest.raises(HTTPError, match="403"):
        docs.page("/index.html", certificate="spark-worker")
    # For its own health check.
    assert docs.page("/", certificate="data-docs") == "the day is valid"


# The limit of the container (DATA_DOCS_MEMORY in compose/.env).
LIMIT_MIB, AT_ONCE, LARGE_MIB = 48, 16, 16


def test_large_pages_for_many_readers_take_less_memory_than_the_container_has(docs: RunningDocs) -> None:
    docs.write("large.html", "d" * (LARGE_MIB * 2**20))

    with ThreadPoolExecutor(AT_ONCE) as readers:
        sizes = list(readers.map(lambda _: docs.size("/large.html"), range(AT_ONCE)))

    assert sizes == [LARGE_MIB * 2**20] * AT_ONCE
    assert peak_mib({docs.process.pid}) < LIMIT_MIB
