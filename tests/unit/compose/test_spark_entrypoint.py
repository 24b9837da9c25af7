"""The entrypoint of Spark's image: secrets get into Spark's settings, and into no command line."""

import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

from services.provision.certificates import CertificateDirectory
from services.provision.provisioning import ChangeLog
from tests.unit.compose.configured import COMPOSE


class Container:
    """A container's places, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.secrets, self._defaults, self.settings = folder / "secrets", folder / "etc", folder / "settings"
        for each in (self.secrets, self._defaults):
            each.mkdir()
        (self._defaults / "spark-defaults.conf").write_text("spark.ui.port 4040")

    def settings_of(self, command: str = 'cat "$SPARK_CONF_DIR/spark-defaults.conf"') -> dict[str, str]:
        """Spark's settings, as the container's command finds them."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "SPARK_CONF_DIR": str(self._defaults),
            "SPARK_SECRETS": str(self.secrets),
            "SPARK_SETTINGS": str(self.settings),
        }
        entrypoint = str(COMPOSE / "spark" / "entrypoint.sh")
        done = subprocess.run(
            ("/bin/bash", entrypoint, "/bin/bash", "-c", command),
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if line)


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def test_without_a_secret_the_mounted_settings_are_used(container: Container) -> None:
    assert container.settings_of() == {"spark.ui.port": "4040"}
    assert not container.settings.exists()


def test_the_secret_of_the_rpc_gets_into_a_file_that_only_spark_can_read(container: Container) -> None:
    (container.secrets / "spark-rpc").write_text("a-secret")

    found = container.settings_of()

    assert found["spark.ui.port"] == "4040"
    assert found["spark.authenticate"] == found["spark.network.crypto.enabled"] == "true"
    assert found["spark.authenticate.secret"] == "a-secret"
    assert stat.S_IMODE((container.settings / "spark-defaults.conf").stat().st_mode) == 0o600


@pytest.mark.parametrize("service", ["ingest-events", "spark-history", "spark-master", "spark-worker"])
def test_pages_are_served_by_https_for_clients_with_a_certificate(container: Container, service: str) -> None:
    certificates = container.secrets.parent / "certificates"
    CertificateDirectory(certificates, ChangeLog("certificates")).update([service], datetime.now(UTC))
    (container.secrets / f"tls-{service}").write_bytes((certificates / f"{service}.pem").read_bytes())

    found = container.settings_of()

    for namespace in ("ui", "standalone", "historyServer"):
        assert found[f"spark.ssl.{namespace}.enabled"] == found[f"spark.ssl.{namespace}.needClientAuth"] == "true"
        keys, password = found[f"spark.ssl.{namespace}.keyStore"], found[f"spark.ssl.{namespace}.keyStorePassword"]
        key, certificate, _ = load_key_and_certificates(Path(keys).read_bytes(), password.encode())
        assert key is not None
        assert certificate is not None


def test_an_executor_of_kubernetes_is_started_as_spark_describes_it(container: Container, tmp_path: Path) -> None:
    java = tmp_path / "java/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
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
        "SPARK_HOME": "/opt/spark",
        "SPARK_CONF_DIR": "/opt/spark/conf",
    }

    done = subprocess.run(
        ("/bin/bash", str(COMPOSE / "spark" / "entrypoint.sh"), "executor"),
        env={
            "PATH": "/usr/bin:/bin",
            "JAVA_HOME": str(java.parents[1]),
            "SPARK_SECRETS": str(container.secrets),
            **described,
        },
        capture_output=True,
        text=True,
        check=True,
    )

    arguments = done.stdout.splitlines()
    assert arguments[:7] == [
        "-Dspark.authenticate=true",
        "-Dname=two words",
        "-Xms512m",
        "-Xmx512m",
        "-cp",
        ":/opt/spark/conf:/opt/spark/jars/*",
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
