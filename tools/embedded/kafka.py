"""A single Kafka node (KRaft) as a child process."""

import base64
import subprocess
import time
import uuid
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic  # the stubs of `admin` do not export it

from gamelake.objects.local_files import sync
from tools.embedded.java import find_java_home
from tools.embedded.ports import HOST, accepts_connections, free_port
from tools.embedded.process import Program, ServiceError
from tools.embedded.service import REPOSITORY, EmbeddedService, fetched

JARS = REPOSITORY / "build" / "jars" / "kafka"
MIB = 1024 * 1024
JVM_OPTIONS = (
    "-Xms512m",
    "-Xmx512m",
    "-XX:+UseG1GC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    # At its default level "info", the log of the shutdown hides the reason of a failure.
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)


_NONE: Mapping[str, str | int] = MappingProxyType({})
SINGLE_NODE: Mapping[str, str | int] = {
    "auto.create.topics.enable": "false",  # a misspelt topic must fail, not appear
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3000,  # a broker that was killed may not come back before its session is over
    "default.replication.factor": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.segment.delete.delay.ms": 1000,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
}
SMALL_MACHINE: Mapping[str, str | int] = {
    "log.cleaner.dedupe.buffer.size": 16 * MIB,  # 128 MiB by default, a quarter of the heap
    "log.segment.bytes": 256 * MIB,
    "num.io.threads": 4,
    "num.network.threads": 2,
    "num.recovery.threads.per.data.dir": 2,
    "socket.receive.buffer.bytes": MIB,
    "socket.send.buffer.bytes": MIB,
}
# Each record is on the disk before Kafka acknowledges it, or consumers see it: a power cut loses none.
SYNCED: Mapping[str, str | int] = {"log.flush.interval.messages": 1}
# For a topic, whose own setting counts before the broker's: Kafka's default, by which the kernel writes when it likes.
UNSYNCED_TOPIC: Mapping[str, str] = {"flush.messages": str(2**63 - 1)}
DEADLINE = timedelta(seconds=30)
POLL_SECONDS = 0.05


class EmbeddedKafka(EmbeddedService):
    """Kafka on this machine; records and topics are in `directory` and outlive the process.

    Args:
        settings: settings of the broker, in addition to those of this class or replacing them.
        ports: of clients and of the controller; free ones if None.
    """

    name = "Kafka"

    def __init__(
        self, directory: Path, settings: Mapping[str, str | int] = _NONE, ports: tuple[int, int] | None = None
    ) -> None:
        super().__init__(directory)
        self._own_settings = settings
        self._port, self._controller_port = ports or (free_port(), free_port())

    @property
    def bootstrap_servers(self) -> str:
        """The address for Kafka clients."""
        return f"{HOST}:{self._port}"

    def program(self) -> Program:
        """Write the settings, format the directory if it is new, and describe the process."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "server.properties"
        settings.write_text(_as_properties(self._settings()))
        java = (str(find_java_home() / "bin" / "java"), "-cp", f"{fetched(JARS)}/*")
        if not (self._data / "meta.properties").exists():
            _format((*java, "kafka.tools.StorageTool"), settings, self._data)
        command = (*java, *JVM_OPTIONS, "kafka.Kafka", str(settings))
        return Program(name=self.name, command=command, log_file=self.directory / "kafka.log")

    def is_healthy(self) -> bool:
        """Return True if the broker responds and is registered, so that topics can be created on it."""
        # The port is checked first, because librdkafka prints a line for every refused connection.
        if not accepts_connections(self._port):
            return False
        try:
            return bool(AdminClient({"bootstrap.servers": self.bootstrap_servers}).list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _settings(self) -> Mapping[str, str | int]:
        return {
            **_node(self._port, self._controller_port),
            **SINGLE_NODE,
            **SMALL_MACHINE,
            "log.dirs": str(self._data),
            **self._own_settings,
        }


def _node(port: int, controller_port: int) -> Mapping[str, str | int]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        # Set here and not in the formatted metadata, so that the ports may differ between runs.
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
    }


def _format(storage_tool: tuple[str, ...], settings: Path, data: Path) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    # The option and its value as one word: a random id may begin with a dash.
    command = (*storage_tool, "format", f"--cluster-id={cluster}", "--config", str(settings), "--ignore-formatted")
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise ServiceError(f"Kafka could not format its directory:\n{outcome.stdout}{outcome.stderr}")
    # The tool doesn't, and Kafka can't start with the files that a power cut leaves.
    for path in (*data.iterdir(), data, data.parent):
        sync(path)


def _as_properties(settings: Mapping[str, str | int]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def create_topic(
    bootstrap_servers: str, name: str, partitions: int, config: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Create a topic and return when its partitions are writable; an existing topic is not changed.

    Raises:
        ServiceError: it exists with another number of partitions, or did not become writable.
    """
    admin = _admin(bootstrap_servers)
    request = admin.create_topics(
        [NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config))]
    )
    try:
        request[name].result(DEADLINE.total_seconds())
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    found = _wait_for_leaders(admin, name)
    if found != partitions:
        raise ServiceError(f"the topic {name} has {found} partitions, not {partitions}")


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Delete a topic with its records, if it exists."""
    admin = _admin(bootstrap_servers)
    try:
        admin.delete_topics([name])[name].result(DEADLINE.total_seconds())
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise


def _admin(bootstrap_servers: str) -> AdminClient:
    # No log: a client that outlives its broker would report that on stderr.
    return AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})


def _wait_for_leaders(admin: AdminClient, name: str) -> int:
    latest = time.monotonic() + DEADLINE.total_seconds()
    while time.monotonic() < latest:
        partitions = admin.list_topics(name, timeout=DEADLINE.total_seconds()).topics[name].partitions
        if partitions and all(partition.leader >= 0 for partition in partitions.values()):
            return len(partitions)
        time.sleep(POLL_SECONDS)
    raise ServiceError(f"the topic {name} has partitions without a leader")
