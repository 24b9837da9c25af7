"""The chart as Helm renders it, and what the tests ask of its objects."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
CHART = REPOSITORY / "deploy/helm/gamelake"
TEMPLATES = sorted((CHART / "templates").iterdir())
EXAMPLES = sorted((REPOSITORY / "deploy/helm/values").glob("*.yaml"))
NAMESPACE = "games"
# `make chart-check` names Helm. Else it is the machine's, the environment's, or one that was built before.
_OWN = os.pathsep.join([str(Path(sys.prefix) / "bin"), str(REPOSITORY / "build/helm")])
HELM = os.environ.get("HELM") or shutil.which("helm") or shutil.which("helm", path=_OWN)


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a rendered pod, with the pod's name and specification."""

    pod: str
    pod_spec: dict[str, Any]
    raw: dict[str, Any]
    is_task: bool

    @property
    def environment(self) -> dict[str, Any]:
        """Its environment variables; a value from a field is None."""
        return {each["name"]: each.get("value") for each in self.raw.get("env", ())}


def helm(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Helm on the assembled chart; its exit code is not checked."""
    return subprocess.run([str(HELM), *arguments], capture_output=True, text=True, check=False)


def template(chart: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Render the chart, for a cluster with all APIs."""
    return helm("template", "gamelake", str(chart), "--namespace", NAMESPACE, "--kube-version", "1.34.2", *arguments)


@cache
def rendered(chart: Path, *arguments: str) -> tuple[dict[str, Any], ...]:
    done = template(chart, *arguments)
    assert done.returncode == 0, done.stderr
    return tuple(each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each)


def containers(objects: tuple[dict[str, Any], ...]) -> Iterator[Container]:
    """All containers of the objects, those of executors as well."""
    for each in objects:
        name, kind = each["metadata"]["name"], each["kind"]
        if kind in ("Deployment", "Job"):
            yield from _of_pod(name, each["spec"]["template"]["spec"], is_task=kind == "Job")
        elif kind == "CronJob":
            yield from _of_pod(name, each["spec"]["jobTemplate"]["spec"]["template"]["spec"], is_task=True)
        elif kind == "ConfigMap" and "executor.yaml" in each["data"]:
            yield from _of_pod(f"{name}-executor", yaml.safe_load(each["data"]["executor.yaml"])["spec"], is_task=True)


def _of_pod(name: str, spec: dict[str, Any], *, is_task: bool) -> Iterator[Container]:
    for each in spec["containers"]:
        yield Container(name, spec, each, is_task)


def of_kind(objects: tuple[dict[str, Any], ...], kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}
