"""Writes the schemas from Kubernetes' swagger.json and the definitions of the Prometheus operator's types."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
KINDS = (
    "apps.v1.Deployment", "autoscaling.v2.HorizontalPodAutoscaler", "batch.v1.CronJob", "batch.v1.Job",
    "core.v1.ConfigMap", "core.v1.Pod", "core.v1.Service", "core.v1.ServiceAccount", "networking.v1.Ingress",
    "networking.v1.NetworkPolicy", "policy.v1.PodDisruptionBudget", "rbac.v1.Role", "rbac.v1.RoleBinding",
)  # fmt: skip


def main(swagger: Path, *definitions: Path) -> None:
    """Write both files."""
    found = json.loads(swagger.read_text(encoding="utf-8"))["definitions"]
    todo, used = [f"io.k8s.api.{kind}" for kind in KINDS], {}
    while todo:
        name = todo.pop()
        if name not in used:
            used[name] = without_descriptions(found[name])
            todo.extend(references(found[name]))
    write("kubernetes.json", {name: used[name] for name in sorted(used)})
    operator = (yaml.safe_load(file.read_text(encoding="utf-8"))["spec"] for file in definitions)
    write("prometheus-operator.json", {each["names"]["kind"]: schema_of(each) for each in operator})


def schema_of(definition: dict[str, Any]) -> Any:  # noqa: ANN401 # JSON
    """The schema of a type's stored version."""
    [version] = [each for each in definition["versions"] if each["storage"]]
    return without_descriptions(version["schema"]["openAPIV3Schema"])


def references(schema: Any) -> Iterator[str]:  # noqa: ANN401 # JSON
    """The names of the definitions that a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rsplit("/", 1)[1]
        for each in schema.values():
            yield from references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from references(each)


def without_descriptions(schema: Any) -> Any:  # noqa: ANN401 # JSON
    """A schema without its texts; a property may be named `description`."""
    if isinstance(schema, dict):
        return {
            name: without_descriptions(value)
            for name, value in schema.items()
            if not (name == "description" and isinstance(value, str))
        }
    return [without_descriptions(each) for each in schema] if isinstance(schema, list) else schema


def write(name: str, schemas: dict[str, Any]) -> None:
    """Write a file, one schema on a line."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in schemas.items())
    (HERE / name).write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
