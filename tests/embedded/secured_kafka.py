"""The stack's own Kafka as a child process: its settings and its entrypoint, on ports and in directories of a test."""

import re
import uuid
from datetime import UTC, datetime
from pathlib import Path

from gamelake.kafka import KafkaAccess
from gamelake.model.credentials import ServerCredentials
from services.provision.certificates import CertificateDirectory
from services.provision.kafka import KafkaAdmin
from services.provision.provisioning import ChangeLog
from tools.embedded.java import find_java_home
from tools.embedded.kafka import JARS
from tools.embedded.ports import HOST, accepts_connections, free_port
from tools.embedded.process import Program
from tools.embedded.service import EmbeddedService, fetched

COMPOSE = Path(__file__).parents[2] / "compose" / "kafka"
USERS = ("admin", "ingest-events", "simulator", "maintenance")


class SecuredKafka(EmbeddedService):
    """A Kafka without anonymous access."""

    name = "secured Kafka"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.secrets = self.directory / "secrets"
        self._ports = {9092: free_port(), 9093: free_port(), 9094: free_port(), 19092: free_port()}

    @property
    def bootstrap_servers(self) -> str:
        """The listener for programs on the machine itself."""
        return f"{HOST}:{self._ports[19092]}"

    def access(self, user: str) -> KafkaAccess:
        """The access of a user of the secrets."""
        password = re.search(r"^password=(\w+)$", (self.secrets / f"kafka-{user}").read_text(), re.MULTILINE)
        assert password
        return KafkaAccess(self.bootstrap_servers, ServerCredentials(user, password[1]), str(self.authority))

    def change_password(self, user: str) -> None:
        """Give a user another password, which Kafka does not know yet."""
        (self.secrets / f"kafka-{user}").write_text(f"username={user}\npassword={uuid.uuid4().hex}\n")

    def forget_admin(self) -> None:
        """Make the data as it was before Kafka had hashes of passwords: none of the admin's, and no note of it."""
        KafkaAdmin(self.access("admin")).remove_password("admin")
        (self.directory / "data" / "admin-password.sha256").unlink()

    def users(self) -> list[ServerCredentials]:
        found = [self.access(user).credentials for user in USERS if user != "admin"]
        return [credentials for credentials in found if credentials]

    @property
    def authority(self) -> Path:
        """The certificate of the authority that clients trust."""
        return self.directory / "certificates" / "ca.pem"

    def program(self) -> Program:
        """Write the secrets once, the settings with the ports and directories of the test, and name the entrypoint."""
        self._write_secrets()
        settings = self.directory / "server.properties"
        settings.write_text(self._settings())
        return Program(
            name=self.name,
            command=("/bin/bash", str(COMPOSE / "entrypoint.sh")),
            log_file=self.directory / "kafka.log",
            environment={
                "JAVA_HOME": str(find_java_home()),
                "KAFKA_SETTINGS": str(settings),
                "KAFKA_JARS": str(fetched(JARS)),
                "KAFKA_DATA": str(self.directory / "data"),
                "KAFKA_SECRETS": str(self.secrets),
                "KAFKA_RUN_DIRECTORY": str(self.directory / "run"),
                "KAFKA_HEAP_OPTS": "-Xms384m -Xmx384m",
            },
        )

    def is_healthy(self) -> bool:
        """Return True if the broker listens, which it does once it can serve requests."""
        return accepts_connections(self._ports[19092])

    @property
    def cluster_id(self) -> str:
        """The settings of the formatted storage."""
        properties = (self.directory / "data" / "meta.properties").read_text()
        found = re.search(r"^cluster\.id=(.+)$", properties, re.MULTILINE)
        assert found
        return found[1]

    def _write_secrets(self) -> None:
        self.secrets.mkdir(parents=True, exist_ok=True)
        for user in USERS:
            file = self.secrets / f"kafka-{user}"
            if not file.exists():
                file.write_text(f"username={user}\npassword={uuid.uuid4().hex}\n")
        certificates = CertificateDirectory(self.authority.parent, ChangeLog("certificates"))
        certificates.update(["kafka"], datetime.now(UTC))

    def _settings(self) -> str:
        text = (COMPOSE / "server.properties").read_text()
        text = re.sub(r":(9092|9093|9094|19092)\b", lambda port: f":{self._ports[int(port[1])]}", text)
        text = text.replace("//kafka:", f"//{HOST}:").replace("//0.0.0.0:", f"//{HOST}:")
        text = text.replace("/run/secrets/tls-kafka", str(self.authority.parent / "kafka.pem"))
        return text.replace("/var/lib/kafka", str(self.directory / "data"))
