"""A schema registry (Apicurio) as a child process, with its Confluent-compatible API."""

from http.client import HTTPConnection, HTTPException
from pathlib import Path

from tools.embedded.java import find_java_home
from tools.embedded.ports import HOST, accepts_connections, free_port
from tools.embedded.process import Program
from tools.embedded.service import REPOSITORY, EmbeddedService, fetched

DISTRIBUTION = REPOSITORY / "build" / "registry"
API = "/apis/ccompat/v7"
# It serves few requests: optimising compilation would only take CPU time from other processes.
JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class EmbeddedRegistry(EmbeddedService):
    """A registry on this machine; schemas and their ids are in `directory` and outlive the process.

    Args:
        ports: of clients and of its management; free ones if None.
    """

    name = "schema registry"

    def __init__(self, directory: Path, ports: tuple[int, int] | None = None) -> None:
        super().__init__(directory)
        self._port, self._management_port = ports or (free_port(), free_port())

    @property
    def url(self) -> str:
        """The base URL for Confluent clients."""
        return f"http://{HOST}:{self._port}{API}"

    def program(self) -> Program:
        """Describe the process and its settings."""
        self.directory.mkdir(parents=True, exist_ok=True)
        java = str(find_java_home() / "bin" / "java")
        return Program(
            name=self.name,
            command=(java, *JVM_OPTIONS, "-jar", str(fetched(DISTRIBUTION) / "quarkus-run.jar")),
            log_file=self.directory / "registry.log",
            environment=self._environment(),
        )

    def is_healthy(self) -> bool:
        """Return True if the API responds."""
        if not accepts_connections(self._port):
            return False
        connection = HTTPConnection(HOST, self._port, timeout=5)
        try:
            connection.request("GET", f"{API}/subjects")
            return connection.getresponse().status == 200  # noqa: PLR2004 - OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def _environment(self) -> dict[str, str]:
        return {
            "APICURIO_STORAGE_KIND": "sql",
            "APICURIO_STORAGE_SQL_KIND": "h2",
            # With another delay, a crash can lose an id that a producer already uses, and assign it again.
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.directory}/schemas;WRITE_DELAY=0",
            "APICURIO_DATASOURCE_JDBC_INITIAL_SIZE": "1",
            "APICURIO_DATASOURCE_JDBC_MIN_SIZE": "1",
            "APICURIO_DATASOURCE_JDBC_MAX_SIZE": "10",
            "APICURIO_IMPORT_WORK_DIR": str(self.directory),
            "APICURIO_STORAGE_SNAPSHOT_LOCATION": str(self.directory),
            "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self._port),
            "QUARKUS_MANAGEMENT_HOST": HOST,
            "QUARKUS_MANAGEMENT_PORT": str(self._management_port),
        }
