"""The entrypoint of Spark's image: secrets get into Spark's settings, and into no command line."""

import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.support.programs import add_program
from tests.unit.compose.configured import COMPOSE


class Container:
    """A container's places, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.secrets, self.defaults, self.made = folder / "secrets", folder / "etc", folder / "settings"
        self.programs = folder / "java/bin"
        for each in (self.secrets, self.defaults):
            each.mkdir()
        (self.defaults / "spark-defaults.conf").write_text("spark.ui.port 4040")

    def settings(self) -> dict[str, str]:
        """Spark's settings in the file that PySpark names to `spark-submit`."""
        option, file, shell = self.output("sh", "-c", 'echo "$PYSPARK_SUBMIT_ARGS"').split()
        assert (option, shell) == ("--properties-file", "pyspark-shell")
        return dict(line.split(" ", 1) for line in Path(file).read_text().splitlines() if line)

    def output(self, *command: str, **variables: str) -> str:
        environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "SPARK_HOME": "/opt/spark",
            "SPARK_CONF_DIR": str(self.defaults),
            "SPARK_SECRETS": str(self.secrets),
            "SPARK_SETTINGS": str(self.made),
            **variables,
        }
        started = ("/bin/bash", str(COMPOSE / "spark" / "entrypoint.sh"), *command)
        return subprocess.run(started, env=environment, capture_output=True, text=True, check=True).stdout

    def add_program(self, name: str, script: str) -> Path:
        """Put a program where the image looks for the container's command."""
        return add_program(self.programs / name, f"#!/bin/bash\n{script}\n")


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def test_without_a_secret_the_mounted_settings_are_used(container: Container) -> None:
    assert container.settings() == {"spark.ui.port": "4040"}
    assert not container.made.exists()


def test_the_secret_of_the_rpc_gets_into_a_file_that_only_spark_can_read(container: Container) -> None:
    (container.secrets / "spark-rpc").write_text("a-secret")

    found = container.settings()

    assert found["spark.ui.port"] == "4040"
    assert found["spark.authenticate"] == found["spark.network.crypto.enabled"] == "true"
    assert found["spark.authenticate.secret"] == "a-secret"
    assert stat.S_IMODE((container.made / "spark-defaults.conf").stat().st_mode) == 0o600


@pytest.mark.parametrize("service", ["ingest-events", "spark-history", "spark-master", "spark-worker"])
def test_pages_are_served_by_https_for_clients_with_a_certificate(container: Container, service: str) -> None:
    certificates = container.secrets.parent / "certificates"
    CertificateDirectory(certificates, ChangeLog("certificates")).update([service], datetime.now(UTC))
    (container.secrets / f"tls-{service}").write_bytes((certificates / f"{service}.pem").read_bytes())

    found = container.settings()

    for namespace in ("ui", "standalone", "historyServer"):
        assert found[f"spark.ssl.{namespace}.enabled"] == found[f"spark.ssl.{namespace}.needClientAuth"] == "true"
        keys, password = found[f"spark.ssl.{namespace}.keyStore"], found[f"spark.ssl.{namespace}.keyStorePassword"]
        key, certificate, _ = load_key_and_certificates(Path(keys).read_bytes(), password.encode())
        assert key is not None
        assert certificate is not None


def test_masters_workers_and_the_history_server_get_the_file_of_settings_as_an_option(container: Container) -> None:
    container.add_program("spark-class", 'echo "$*"')
    (container.secrets / "spark-rpc").write_text("a-secret")

    arguments = container.output("spark-class", "org.apache.spark.deploy.master.Master", "--port", "7077").split()

    made = str(container.made / "spark-defaults.conf")
    assert arguments == ["org.apache.spark.deploy.master.Master", "--port", "7077", "--properties-file", made]


def test_no_folder_of_settings_is_on_the_class_path_so_that_a_jvm_maps_the_archive_of_classes(
    container: Container,
) -> None:
    (container.defaults / "metrics.properties").touch()
    show = 'echo "${SPARK_CONF_DIR:-none} $JDK_JAVA_OPTIONS"'

    folder, *options = container.output("sh", "-c", show, JDK_JAVA_OPTIONS="-Xss4m").split()

    assert folder == "none"
    assert {"-XX:SharedArchiveFile=/opt/spark/jars.jsa", "-Xss4m"} < set(options)
    # What Spark would find on the class path else.
    assert f"-Dspark.metrics.conf={container.defaults}/metrics.properties" in options
    assert "-Dlog4j2.configurationFile=/opt/gamelake/log4j2.properties" in options


def test_the_mounted_settings_of_logs_are_used(container: Container) -> None:
    (container.defaults / "log4j2.properties").touch()

    options = container.output("sh", "-c", 'echo "$JDK_JAVA_OPTIONS"').split()

    assert f"-Dlog4j2.configurationFile={container.defaults}/log4j2.properties" in options


def test_an_executor_of_kubernetes_is_started_as_spark_describes_it(container: Container) -> None:
    java = container.add_program("java", 'printf "%s\\n" "$@"')
    described = {
        "SPARK_JAVA_OPT_0": "-Dspark.authenticate=true",
        "SPARK_JAVA_OPT_1": "-Dname=two words",
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
        "SPARK_EXECUTOR_ID": "3",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
        "SPARK_EXECUTOR_POD_NAME": "ingest-exec-3",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_CONF_DIR": "/opt/spark/conf",
    }

    arguments = container.output("executor", JAVA_HOME=str(java.parents[1]), **described).splitlines()

    assert arguments[:7] == [
        "-Dspark.authenticate=true",
        "-Dname=two words",
        "-Xms512m",
        "-Xmx512m",
        "-cp",
        "/opt/spark/conf/:/opt/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    ]
    assert dict(zip(arguments[7::2], arguments[8::2], strict=True)) == {
        "--driver-url": described["SPARK_DRIVER_URL"],
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.2",
        "--resourceProfileId": "0",
        "--podName": "ingest-exec-3",
    }
