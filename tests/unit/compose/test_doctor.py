"""`make doctor` prints one line per requirement, with a remedy if it is not met."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.programs import add_program, run_alone
from tests.unit.compose.configured import COMPOSE, OWN_MIXES, has_compose, services
from tests.unit.compose.configured import CORE as CORE_FILE

# A fake Docker: one line for each Go template.
FAKE_DOCKER = """#!/bin/bash
case "$*" in
  "compose version --short") [ -n "$COMPOSE_VERSION" ] && echo "$COMPOSE_VERSION" ;;
  *ServerVersion*) [ -n "$ENGINE_VERSION" ] && echo "$ENGINE_VERSION" ;;
  *MemTotal*) echo "$MEMORY" ;;
  *MemoryLimit*) echo "$MEMORY_LIMIT" ;;
  *NCPU*) echo "$CORES" ;;
  *Architecture*) echo "$ARCHITECTURE" ;;
  *DockerRootDir*) echo "$ROOT" ;;
  "ps --quiet"*) echo $OWN_CONTAINER ;;
  "inspect"*"$OWN_CONTAINER") echo " $OWN_PORT " ;;
  "ps --filter publish=$TAKEN_PORT "*) echo "$HOLDER" ;;
  "ps --filter publish="*) : ;;
  *) exit 1 ;;
esac
"""
# The output of `df -Pk` for a disk with this many KiB free.
FAKE_DF = """#!/bin/bash
[ -n "$FREE_KIB" ] || exit 1
echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
echo "/dev/sda1 1 1 $FREE_KIB 1% /"
"""
# Nothing listens on port 2; tests/embedded/test_doctor_ports.py has one on which something does.
CORE = """\
services:
  a: {mem_limit: '${KAFKA_MEMORY}m', ports: ['127.0.0.1:${KAFKA_PORT}:19092']}
  b: {mem_limit: '${SPARK_WORKER_MEMORY}m'}
"""
MORE = "services: {c: {mem_limit: '${PROMETHEUS_MEMORY}m'}}\n"
SETTINGS = """\
# A comment
KAFKA_MEMORY=1000
SPARK_WORKER_MEMORY=2000
PROMETHEUS_MEMORY=500
UNUSED_MEMORY=90000
KAFKA_PORT=2
"""
MIB, GIB_IN_KIB = 1024 * 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The doctor's output."""

    exit_code: int
    lines: list[str]

    def about(self, need: str) -> str:
        (line,) = [line for line in self.lines if line.split()[1] == f"{need}:"]
        return line


@dataclass(slots=True)
class Machine:
    """A machine that meets all requirements, unless a test changes it."""

    directory: Path
    variables: dict[str, str] = field(
        default_factory=lambda: {
            "ENGINE_VERSION": "28.2.2",
            "COMPOSE_VERSION": "v2.40.3",
            "MEMORY": str(16_000 * MIB),
            "MEMORY_LIMIT": "true",
            "CORES": "4",
            "ARCHITECTURE": "aarch64",
            "ROOT": "/var/lib/docker",
            "FREE_KIB": str(100 * GIB_IN_KIB),
        }
    )

    def examine(self, *arguments: str, **changed: str) -> Diagnosis:
        """Run the doctor on this machine, with some of it changed."""
        variables = {"COMPOSE_DIRECTORY": str(self.directory)} | self.variables | changed
        outcome = run_alone((COMPOSE / "doctor.sh", *arguments), self.directory / "bin", **variables)
        assert outcome.stderr == ""
        return Diagnosis(outcome.returncode, outcome.stdout.splitlines())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A good machine, and a small stack."""
    for name, text in (("docker", FAKE_DOCKER), ("df", FAKE_DF)):
        add_program(tmp_path / "bin" / name, text)
    (tmp_path / "compose.yaml").write_text(CORE)
    (tmp_path / "compose.observability.yaml").write_text(MORE)
    (tmp_path / ".env").write_text(SETTINGS)
    return Machine(tmp_path)


def test_a_good_machine_passes_every_check(machine: Machine) -> None:
    found = machine.examine()

    assert found.exit_code == 0
    assert {line.split()[0] for line in found.lines} == {"PASS"}
    needs = ["engine", "compose", "architecture", "memory", "cores", "disk", "ports"]
    assert [line.split()[1] for line in found.lines] == [f"{need}:" for need in needs]


@pytest.mark.parametrize(
    ("need", "changed", "remedy"),
    [
        ("engine", {"ENGINE_VERSION": "19.03.15"}, "update Docker"),
        ("compose", {"COMPOSE_VERSION": "2.19.1"}, "update the compose plugin"),
        ("compose", {"COMPOSE_VERSION": ""}, "install the compose plugin"),
        ("architecture", {"ARCHITECTURE": "riscv64"}, "amd64 and arm64"),
        ("memory", {"MEMORY": str(3_499 * MIB)}, "make up-minimal"),
        ("disk", {"FREE_KIB": str(7 * GIB_IN_KIB)}, "docker system prune"),
    ],
)
def test_an_unmet_requirement_fails_with_its_remedy(
    machine: Machine, need: str, changed: dict[str, str], remedy: str
) -> None:
    found = machine.examine(**changed)

    assert found.exit_code == 1
    assert found.about(need).startswith("FAIL")
    assert remedy in found.about(need)
    assert sum(line.startswith("FAIL") for line in found.lines) == 1


@pytest.mark.parametrize(
    ("need", "changed", "remedy"),
    [
        ("memory", {"MEMORY": str(3_600 * MIB)}, "give the engine more"),
        ("cores", {"CORES": "1"}, "give it more"),
        ("disk", {"FREE_KIB": str(12 * GIB_IN_KIB)}, "free disk space"),
        ("disk", {"FREE_KIB": ""}, "docker system df"),
    ],
)
def test_a_narrow_margin_is_a_warning_only(machine: Machine, need: str, changed: dict[str, str], remedy: str) -> None:
    found = machine.examine(**changed)

    assert found.exit_code == 0
    assert found.about(need).startswith("WARN")
    assert remedy in found.about(need)


def test_a_port_of_another_container_is_reported_with_both_remedies(machine: Machine) -> None:
    found = machine.examine(TAKEN_PORT="2", HOLDER="someone-elses-kafka")

    assert found.exit_code == 1
    assert found.about("ports").startswith("FAIL ports: the container someone-elses-kafka uses 127.0.0.1:2;")
    assert "docker stop someone-elses-kafka" in found.about("ports")
    assert "KAFKA_PORT=... in compose/.env.override" in found.about("ports")


def test_a_port_of_this_stack_itself_passes(machine: Machine) -> None:
    found = machine.examine(TAKEN_PORT="2", HOLDER="gamelake-kafka-1", OWN_CONTAINER="0123abcd", OWN_PORT="2")

    assert found.about("ports") == "PASS ports: all 1 are free on 127.0.0.1, or this stack's own"


def test_a_port_from_the_override_file_is_the_one_checked(machine: Machine) -> None:
    (machine.directory / ".env.override").write_text("KAFKA_PORT=3\n")

    assert machine.examine(TAKEN_PORT="2", HOLDER="someone-elses-kafka").exit_code == 0


def test_an_engine_without_memory_limits_is_a_warning(machine: Machine) -> None:
    found = machine.examine(MEMORY_LIMIT="false")

    assert found.exit_code == 0
    assert any(line.startswith("WARN memory: this engine enforces no limits") for line in found.lines)


def test_without_a_docker_command_it_says_where_to_get_one(machine: Machine) -> None:
    (machine.directory / "bin" / "docker").unlink()

    found = machine.examine(PATH=f"{machine.directory / 'bin'}:{_tools(machine.directory)}")

    assert found.exit_code == 1
    (line,) = found.lines
    assert "there is no docker command; install Docker (https://" in line


def _tools(directory: Path) -> Path:
    """What the script needs of the system, in a folder without its docker."""
    tools = directory / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "env"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    return tools


def test_an_engine_that_does_not_respond_is_the_only_finding(machine: Machine) -> None:
    found = machine.examine(ENGINE_VERSION="")

    assert found.exit_code == 1
    (line,) = found.lines
    assert "it does not respond; start Docker" in line


def test_memory_is_the_sum_of_what_the_mix_uses(machine: Machine) -> None:
    assert "may take 3500 MiB" in machine.examine().about("memory")
    assert "may take 3000 MiB" in machine.examine("--minimal").about("memory")
    assert "may take 7500 MiB" in machine.examine(WORKERS="3").about("memory")


def test_what_make_up_does_not_start_needs_no_memory_and_no_port(machine: Machine) -> None:
    for overlay, name in (("quality", "QUALITY"), ("keycloak", "KEYCLOAK"), ("bi", "BI"), ("official", "OTHER")):
        service = f"{{mem_limit: '${{{name}_MEMORY}}m', ports: ['127.0.0.1:${{{name}_PORT}}:1']}}"
        (machine.directory / f"compose.{overlay}.yaml").write_text(f"services: {{{overlay}: {service}}}\n")
    more = "QUALITY_MEMORY=2000\nKEYCLOAK_MEMORY=700\nBI_MEMORY=600\nOTHER_MEMORY=9\n"
    more += "QUALITY_PORT=7\nKEYCLOAK_PORT=8\nBI_PORT=6\nOTHER_PORT=9\n"
    (machine.directory / ".env").write_text(SETTINGS + more)

    assert "may take 3500 MiB" in machine.examine().about("memory")
    assert "all 1 are free" in machine.examine().about("ports")
    assert "may take 4200 MiB" in machine.examine(OIDC="keycloak").about("memory")
    assert "may take 3700 MiB" in machine.examine("--minimal", OIDC="keycloak").about("memory")
    assert "may take 4100 MiB" in machine.examine(BI="1").about("memory")


@pytest.mark.parametrize(("arguments", "mix"), [((), OWN_MIXES[-1]), (("--minimal",), (CORE_FILE,))])
def test_the_memory_of_the_stack_is_that_of_the_services_that_make_up_starts(
    machine: Machine, arguments: tuple[str, ...], mix: tuple[str, ...]
) -> None:
    if not has_compose():
        pytest.skip("docker compose is missing")
    needed = sum(service.memory_mib for service in services(mix) if service.runs_on)

    found = machine.examine(*arguments, COMPOSE_DIRECTORY=str(COMPOSE))

    assert f"may take {needed:.0f} MiB" in found.about("memory")


def test_the_environment_overrides_env_override_which_overrides_env(machine: Machine) -> None:
    (machine.directory / ".env.override").write_text("KAFKA_MEMORY=1100\nPROMETHEUS_MEMORY=600\n")

    assert "may take 3705 MiB" in machine.examine(PROMETHEUS_MEMORY="605").about("memory")


def test_the_help_names_every_argument(machine: Machine) -> None:
    found = machine.examine("--help")

    assert found.exit_code == 0
    assert "--minimal" in "\n".join(found.lines)
