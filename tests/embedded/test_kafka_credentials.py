"""The stack's Kafka with authentication: the job uses its password, which is stored nowhere."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from gamelake.model.errors import KafkaUnavailableError
from gamelake.observability.retention_health import topic_retention
from gamelake.privacy.scan import Scanner
from gamelake.privacy.scanned_topics import scan_topics
from gamelake.scans.search_terms import SearchTerms
from services.provision.declarations import load_topics
from services.provision.kafka import KafkaAdmin
from services.provision.provisioning import ChangeLog, wait_for
from services.provision.topics import synchronize_rules, synchronize_topics, synchronize_users
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.secured_kafka import COMPOSE, SecuredKafka
from tests.embedded.sending import Sender
from tests.support.eventually import eventually
from tests.support.scraping import scrape
from tools.embedded import EmbeddedRegistry
from tools.embedded.ports import free_port
from tools.embedded.process import ServiceMissingError

TOPIC = "events"
# Whatever knows the password talks, and the query's plans go into an event log, which is all that Spark's UI has.
TALKATIVE_LOG = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c %m%n
logger.kafka.name = org.apache.kafka.clients
logger.kafka.level = info
logger.source.name = org.apache.spark.sql.kafka010
logger.source.level = debug
logger.stream.name = org.apache.spark.sql.execution.streaming
logger.stream.level = debug
"""


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory, missing_service: Callable[[str], NoReturn]
) -> Iterator[SecuredKafka]:
    """The stack's Kafka with the stack's topics and rights."""
    kafka = SecuredKafka(tmp_path_factory.mktemp("secured"))
    try:
        kafka.start()
    except ServiceMissingError as error:
        missing_service(str(error))
    as_declared(kafka)
    yield kafka
    kafka.stop()


def as_declared(secured: SecuredKafka) -> None:
    kafka, declared = KafkaAdmin(secured.access("admin")), load_topics(COMPOSE / "topics.yaml")
    found = wait_for("kafka", kafka.partitions, timedelta(seconds=60))
    changes = ChangeLog("topics")
    synchronize_users(kafka, "admin", secured.users(), changes)
    synchronize_topics(kafka, declared, found, changes)
    synchronize_rules(kafka, declared, changes)


@pytest.fixture
def lakehouse(tmp_path: Path, secured: SecuredKafka, registry: EmbeddedRegistry) -> Lakehouse:
    """A lakehouse fed by the stack's Kafka, its job with the secret of the user `ingest-events`."""
    lakehouse = Lakehouse(tmp_path, secured.bootstrap_servers, registry.url, TOPIC)
    lakehouse.settings["GAMELAKE_KAFKA_CREDENTIALS_FILE"] = str(secured.secrets / "kafka-ingest-events")
    lakehouse.settings["GAMELAKE_KAFKA_CA_FILE"] = str(secured.authority)
    return lakehouse


def make_spark_talkative(lakehouse: Lakehouse) -> None:
    configuration = lakehouse.directory / "conf"
    (lakehouse.directory / "events").mkdir()
    configuration.mkdir()
    (configuration / "log4j2.properties").write_text(TALKATIVE_LOG)
    (configuration / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir file://{lakehouse.directory}/events\n"
        "spark.eventLog.compress false\n"
    )
    lakehouse.settings["SPARK_CONF_DIR"] = str(configuration)


@pytest.mark.slow
def test_the_job_is_authenticated_and_its_password_is_stored_nowhere(
    lakehouse: Lakehouse, secured: SecuredKafka
) -> None:
    make_spark_talkative(lakehouse)
    port = free_port()
    lakehouse.settings["GAMELAKE_METRICS_PORT"] = str(port)
    simulator = secured.access("simulator").for_clients()
    sent = Sender(secured.bootstrap_servers, lakehouse.registry_url, TOPIC, client=simulator).send_events(30, "Archery")
    with lakehouse.ingesting() as job:
        eventually(lambda: set(sent) <= lakehouse.event_ids().keys(), timeout=180)
        metrics = str(scrape(f"http://127.0.0.1:{port}/metrics"))
        environment = Path(f"/proc/{job.process.pid}/environ").read_text(errors="replace")
        command_lines = "".join(all_command_lines())

    log = job.log_text()
    assert "sasl.jaas.config = [hidden]" in log, "Kafka's client says nothing: the test would pass by silence"
    assert "SparkListenerSQLExecutionStart" in "".join(texts_below(lakehouse.directory / "events"))
    assert "gamelake_stream_up" in metrics
    assert "jobs.ingest_events" in command_lines
    password = password_of(secured)
    assert all(password not in text for text in texts_below(lakehouse.directory))
    assert password not in metrics + environment + command_lines


def password_of(secured: SecuredKafka) -> str:
    credentials = secured.access("ingest-events").credentials
    assert credentials
    return credentials.password


def texts_below(directory: Path) -> list[str]:
    """The files of a folder: tables, state, logs."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert files
    return [path.read_text(errors="replace") for path in files]


def all_command_lines() -> Iterator[str]:
    """Those of every process of the machine: the job's, its JVM's, its Python workers'."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it may end meanwhile
            yield path.read_text(errors="replace")


def test_a_wrong_password_is_no_transient_error(lakehouse: Lakehouse) -> None:
    wrong = lakehouse.directory / "kafka-ingest-events"
    wrong.write_text("username=ingest-events\npassword=another-password\n")
    lakehouse.settings["GAMELAKE_KAFKA_CREDENTIALS_FILE"] = str(wrong)
    job = lakehouse.start()

    assert job.wait() == 2
    assert "Kafka refuses the user name or the password" in job.log_text()
    assert "another-password" not in job.log_text()


def test_a_topic_without_read_access_is_no_transient_error(lakehouse: Lakehouse) -> None:
    """Without access Kafka does not tell whether a topic exists."""
    lakehouse.topic = "misspelt"
    job = lakehouse.start()

    assert job.wait() == 2
    assert "the topic 'misspelt'" in job.log_text()


@pytest.mark.slow
def test_an_unavailable_kafka_at_the_start_is_a_transient_error(lakehouse: Lakehouse) -> None:
    lakehouse.bootstrap_servers = f"127.0.0.1:{free_port()}"
    job = lakehouse.start()

    assert job.wait() == 4
    assert "KafkaUnavailableError" in job.log_text()


def test_maintenance_sees_retention_and_offsets_of_the_topic_but_no_records(secured: SecuredKafka) -> None:
    access, partition = secured.access("maintenance"), TopicPartition(TOPIC, 0)
    assert topic_retention(access, TOPIC) == timedelta(hours=168)

    reader = Consumer({**access.for_clients(), "group.id": "spark-kafka-maintenance", "log_level": 0})
    earliest, end = reader.get_watermark_offsets(partition, timeout=10)
    reader.assign([TopicPartition(TOPIC, 0, earliest)])
    # It has no right to the group either, and hears of both.
    answers = [answer for answer in (reader.poll(timeout=5) for _ in range(3)) if answer is not None]
    reader.close()
    assert 0 <= earliest <= end
    assert {error.code() if (error := each.error()) else None for each in answers} == {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }


@pytest.mark.slow
def test_a_topic_is_scanned_without_a_right_to_any_consumer_group(secured: SecuredKafka) -> None:
    reader = secured.access("ingest-events")
    mark = uuid.uuid4().hex
    producer = Producer(secured.access("simulator").for_clients())
    producer.produce(TOPIC, f"an event with {mark}".encode())
    assert producer.flush(30) == 0
    scanner = Scanner(SearchTerms([mark]))

    # The client hears of the missing right at some time: a race with its first records.
    for _ in range(5):
        scan_topics(scanner, reader, [TOPIC])

    assert scanner.scan.unscanned == []
    assert scanner.scan.findings == 1


def test_the_missing_right_to_describe_a_topic_is_named(secured: SecuredKafka) -> None:
    with pytest.raises(KafkaUnavailableError, match="needs the right to describe the topic's settings"):
        topic_retention(secured.access("simulator"), TOPIC)
