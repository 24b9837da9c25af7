"""Each container of the running stack is isolated from the machine: checks of the CIS Docker Benchmark."""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest

from tests.stack.platform import Stack
from tools.stack import run

Container: TypeAlias = dict[str, Any]
# It reads the machine's own figures, and can write none.
MOUNTED_DIRECTORIES_OF_THE_MACHINE = {("node-exporter", "/")}
SENSITIVE = {"/", "/boot", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr", "/var/run", "/run"}


def inspected(*arguments: str) -> list[Container]:
    """What Docker says about containers or images."""
    found: list[Container] = json.loads(run(("docker", "inspect", *arguments)))
    return found


@pytest.fixture(scope="module")
def containers(stack: Stack) -> Sequence[Container]:
    """All containers, with those that have ended."""
    return inspected(*stack.compose("ps", "--all", "--quiet").split())


def service(container: Container) -> str:
    return str(container["Config"]["Labels"]["com.docker.compose.service"])


def services_where(containers: Sequence[Container], condition: object, *path: str) -> list[str]:
    """The services whose setting at a path of keys is not as a condition says: a function, or the only right value."""
    found = []
    for container in containers:
        setting: Any = container
        for key in path:
            setting = setting[key]
        if not (condition(setting) if callable(condition) else setting == condition):
            found.append(service(container))
    return found


def test_no_process_has_a_capability_or_can_get_one(containers: Sequence[Container]) -> None:
    assert services_where(containers, ["ALL"], "HostConfig", "CapDrop") == []
    assert services_where(containers, None, "HostConfig", "CapAdd") == []
    assert services_where(containers, False, "HostConfig", "Privileged") == []
    # Nothing else: neither seccomp nor AppArmor is switched off.
    assert services_where(containers, ["no-new-privileges:true"], "HostConfig", "SecurityOpt") == []


def test_no_process_runs_as_root(containers: Sequence[Container]) -> None:
    assert services_where(containers, lambda user: user not in {"", "0", "root"}, "Config", "User") == []


def test_no_root_filesystem_can_be_written(containers: Sequence[Container]) -> None:
    assert services_where(containers, True, "HostConfig", "ReadonlyRootfs") == []


def test_memory_and_processes_are_limited(containers: Sequence[Container]) -> None:
    assert services_where(containers, lambda limit: limit > 0, "HostConfig", "Memory") == []
    assert services_where(containers, lambda limit: 0 < limit <= 1024, "HostConfig", "PidsLimit") == []
    # Temporary files are in memory, with a limit.
    assert services_where(containers, lambda files: "size=" in files["/tmp"], "HostConfig", "Tmpfs") == []  # noqa: S108


def test_no_namespace_or_device_of_the_machine_is_shared(containers: Sequence[Container]) -> None:
    for namespace in ("PidMode", "IpcMode", "UTSMode", "UsernsMode", "NetworkMode"):
        assert services_where(containers, lambda mode: mode != "host", "HostConfig", namespace) == []
    assert services_where(containers, lambda devices: not devices, "HostConfig", "Devices") == []
    # The default bridge would connect containers of other projects.
    assert services_where(containers, lambda mode: mode not in {"default", "bridge"}, "HostConfig", "NetworkMode") == []


def test_no_directory_of_the_machine_is_mounted_but_the_projects_own(containers: Sequence[Container]) -> None:
    mounts = [(service(each), mount) for each in containers for mount in each["Mounts"] if mount["Type"] == "bind"]

    assert {(name, m["Source"]) for name, m in mounts if m["Source"] in SENSITIVE} <= MOUNTED_DIRECTORIES_OF_THE_MACHINE
    assert [(name, m["Source"]) for name, m in mounts if m["RW"]] == []
    assert [(name, m["Source"]) for name, m in mounts if "docker.sock" in m["Source"]] == []
    assert [(name, m["Propagation"]) for name, m in mounts if "shared" in m["Propagation"]] == []


def test_ports_are_published_on_loopback_and_none_is_privileged(containers: Sequence[Container]) -> None:
    published = [binding for each in containers for some in _bindings(each) for binding in some]

    assert {binding["HostIp"] for binding in published} == {"127.0.0.1"}
    assert [binding for binding in published if int(binding["HostPort"]) < 1024] == []


def _bindings(container: Container) -> Sequence[Sequence[dict[str, str]]]:
    return [bindings for bindings in (container["HostConfig"]["PortBindings"] or {}).values() if bindings]


def test_the_health_of_each_running_container_is_checked(containers: Sequence[Container]) -> None:
    running = [each for each in containers if each["State"]["Running"]]

    assert len(running) > 10
    assert [service(each) for each in running if "Health" not in each["State"]] == []


def test_no_image_of_the_project_has_a_program_with_the_rights_of_its_owner(containers: Sequence[Container]) -> None:
    images = {each["Image"] for each in containers if str(each["Config"]["Image"]).startswith("gamelake/")}
    search = ("/", "-xdev", "-type", "f", "-perm", "/6000")

    assert len(images) >= 8
    for image in images:
        # As root, who reads every folder; in a container of its own, which ends with the search.
        command = ("docker", "run", "--rm", "--network", "none", "--read-only", "--user", "0", "--entrypoint", "find")
        assert (image, run((*command, image, *search))) == (image, "")


def test_a_running_process_has_the_default_seccomp_filter_and_no_capability(stack: Stack) -> None:
    status = stack.compose("exec", "--no-TTY", "ingest", "cat", "/proc/self/status")
    facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)

    assert facts["Seccomp"].strip() == "2"
    assert facts["NoNewPrivs"].strip() == "1"
    assert {facts[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
