"""The stack's files as docker compose parses them, for each combination of overlays."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

COMPOSE = Path(__file__).parents[3] / "compose"
# Before a command: it can write 1 KiB to a file, and then gets an error as on a full disk.
ON_A_FULL_DISK = ("/bin/bash", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "full-disk")
MIB = 1024 * 1024
CORE = "compose.yaml"
SERVING = "compose.serving.yaml"
OBSERVABILITY = "compose.observability.yaml"
QUALITY = "compose.quality.yaml"
GRAFANA = "compose.grafana.yaml"
OIDC = "compose.oidc.yaml"
KEYCLOAK = "compose.keycloak.yaml"
BI = "compose.bi.yaml"
OFFICIAL = "compose.official.yaml"
OFFICIAL_OBSERVABILITY = "compose.official.observability.yaml"
# What `make up-minimal` and `make up` bring up, without and with a container registry that has Grafana.
OWN_MIXES = ((CORE,), (CORE, SERVING, OBSERVABILITY, QUALITY), (CORE, SERVING, OBSERVABILITY, QUALITY, GRAFANA))


def copy_scripts(checkout: Path, *names: str) -> None:
    """Copy some of the stack's scripts and settings into another checkout."""
    (checkout / "compose").mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(COMPOSE / name, checkout / "compose")


def official(mix: tuple[str, ...]) -> tuple[str, ...]:
    """The same mix with the projects' own images."""
    return (*mix, OFFICIAL, *([OFFICIAL_OBSERVABILITY] if OBSERVABILITY in mix else []))


MIXES = (*OWN_MIXES, *(official(mix) for mix in OWN_MIXES))
# With logins at a provider, whose address stack.sh sets if the stack starts one.
PROVIDER_MIXES = ((CORE, OIDC, KEYCLOAK), (*OWN_MIXES[-1], OIDC, KEYCLOAK), (*official(OWN_MIXES[-1]), OIDC))
# With dashboards of Superset.
BI_MIXES = ((CORE, BI), (*OWN_MIXES[-1], BI), (*official(OWN_MIXES[-1]), BI))
_PROVIDER = {"OIDC_ISSUER": "https://identity.localhost:8443/realms/gamelake"}


@dataclass(frozen=True, slots=True)
class Service:
    """One service, with the properties that a rule may ask about."""

    name: str
    raw: dict[str, Any]

    @property
    def image(self) -> str:
        """Its image with the tag."""
        return str(self.raw["image"])

    @property
    def is_one_shot(self) -> bool:
        """True if it ends by itself and stays ended."""
        return self.raw.get("restart") == "no"

    @property
    def is_started_by_up(self) -> bool:
        """True if it belongs to no profile."""
        return not self.raw.get("profiles")

    @property
    def runs_on(self) -> bool:
        """True if it takes memory while the stack runs."""
        return self.is_started_by_up and not self.is_one_shot

    @property
    def memory_mib(self) -> float:
        """The limit of its memory; 0 without one."""
        return int(self.raw.get("mem_limit", 0)) / MIB

    @property
    def environment(self) -> dict[str, str]:
        return {name: str(value) for name, value in (self.raw.get("environment") or {}).items()}

    @property
    def health_check(self) -> str:
        """The command of its health check; empty without one."""
        check = self.raw.get("healthcheck") or {}
        return "" if check.get("disable") else " ".join(check.get("test") or ())

    @property
    def waits_for(self) -> dict[str, str]:
        return {name: str(each["condition"]) for name, each in (self.raw.get("depends_on") or {}).items()}

    @property
    def command(self) -> list[str]:
        """What it runs; empty for the image's own."""
        return [str(word) for word in self.raw.get("command") or ()]

    @property
    def secrets(self) -> set[str]:
        return {str(each["source"]) for each in self.raw.get("secrets") or ()}

    @property
    def ports(self) -> set[tuple[str | None, str, int]]:
        """Its published ports: address, port on the host, port in the container."""
        return {(each.get("host_ip"), each["published"], each["target"]) for each in self.raw.get("ports") or ()}

    @property
    def mounts(self) -> set[tuple[str, str]]:
        """The files and folders of the machine in it: what, and where."""
        return {(each["source"], each["target"]) for each in self._volumes("bind")}

    @property
    def data(self) -> set[tuple[str, str]]:
        """The volumes in it: which, and where."""
        return {(each["source"], each["target"]) for each in self._volumes("volume") if "source" in each}

    def _volumes(self, kind: str) -> list[dict[str, Any]]:
        return [volume for volume in self.raw.get("volumes") or () if volume["type"] == kind]

    def mounted(self, file_name: str) -> str:
        """The text of a configuration file that is mounted, by itself or in its folder; empty if none is."""
        return "".join(file.read_text() for file in self._mounted_files() if file.name == file_name)

    def _mounted_files(self) -> Iterator[Path]:
        for name, _ in self.mounts:
            source = Path(name)
            if source.is_relative_to(COMPOSE):
                yield from source.rglob("*") if source.is_dir() else (source,)

    @property
    def heap_mib(self) -> float:
        """The heaps of its JVMs together, as far as they are stated; Spark's worker runs one executor."""
        words = " ".join([*self.environment.values(), *self.command, self.mounted("jvm.config")])
        heaps = [_mib(size) for size in re.findall(r"-Xmx(\w+)", words)]
        heaps += [_mib(self.environment["SPARK_DAEMON_MEMORY"])] if "SPARK_DAEMON_MEMORY" in self.environment else []
        heaps += [_spark_setting(self, "spark.executor.memory")] if "--memory" in self.command else []
        heaps += [_spark_setting(self, "spark.driver.memory")] if self.drives_spark else []
        return sum(heaps)

    @property
    def drives_spark(self) -> bool:
        """True if it is a job's driver."""
        return self.command[-1:] in (["jobs.ingest_all"], ["jobs.serving"])

    @property
    def runs_java(self) -> bool:
        """True if a JVM runs in it."""
        own = {"kafka", "keycloak", "registry", "trino"}
        spark = "spark-class" in self.command or self.drives_spark
        return spark or self.name in own


def _spark_setting(service: Service, name: str) -> float:
    found = re.search(rf"^{re.escape(name)}\s+(\w+)", service.mounted("spark-defaults.conf"), re.MULTILINE)
    assert found, f"{service.name} has no {name} in its spark-defaults.conf"
    return _mib(found[1])


def _mib(size: str) -> float:
    number, unit = re.fullmatch(r"(\d+)([kmgKMG])", size).groups()  # type: ignore[union-attr] # fails where it should
    return int(number) * {"k": 1 / 1024, "m": 1, "g": 1024}[unit.lower()]


def has_compose() -> bool:
    """Return True if there is a docker command with compose; neither an engine nor a socket is needed."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    return subprocess.run((docker, "compose", "version"), capture_output=True, check=False).returncode == 0


@cache
def services(mix: tuple[str, ...]) -> tuple[Service, ...]:
    """All services of a mix, those of profiles too."""
    files = [word for name in mix for word in ("--file", str(COMPOSE / name))]
    settings = [".env", *([".env.official"] if OFFICIAL in mix else [])]
    values = [word for name in settings for word in ("--env-file", str(COMPOSE / name))]
    command = ("docker", "compose", *values, *files, "--profile", "*", "config")
    environment = {**os.environ, **(_PROVIDER if OIDC in mix else {})}
    command = (*command, "--format", "json")
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return tuple(Service(name, raw) for name, raw in sorted(json.loads(answer.stdout)["services"].items()))
