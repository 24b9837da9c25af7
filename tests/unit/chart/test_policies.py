"""The policies for a cloud are those of the stack."""

import json
import re
import stat

import yaml
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType  # type: ignore[attr-defined] # its stubs do not export them

from services.provision.access_rules import AccessRule, declared_rules
from services.provision.declarations import load_topics
from tests.unit.chart.rendering import REPOSITORY

POLICIES = REPOSITORY / "deploy/policies"
_LINE = re.compile(
    r"acl --allow-principal User:(?P<user>[\w-]+) --operation (?P<operation>\w+)"
    r" (?:--(?P<resource>topic|group) (?P<name>\S+)(?P<prefixed> --resource-pattern-type prefixed)?|--cluster)"
)


def line_of(rule: AccessRule) -> str:
    """The line of acls.sh that makes a rule."""
    operation = "".join(word.capitalize() for word in AclOperation(rule.operation).name.split("_"))
    on = "--cluster" if rule.resource is ResourceType.BROKER else f"--{rule.resource.name.lower()} {rule.name}"
    prefixed = " --resource-pattern-type prefixed" if rule.pattern is ResourcePatternType.PREFIXED else ""
    return f"acl --allow-principal {rule.principal} --operation {operation} {on}{prefixed}"


def test_kafkas_rules_are_those_that_the_topics_declare() -> None:
    script = POLICIES / "kafka/acls.sh"
    lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line.startswith("acl --")]

    assert stat.S_IMODE(script.stat().st_mode) & stat.S_IXUSR
    assert lines == sorted(map(line_of, declared_rules(load_topics(REPOSITORY / "compose/kafka/topics.yaml"))))
    assert all(_LINE.fullmatch(line) for line in lines)


def test_the_stores_policies_are_the_stacks_own() -> None:
    assert (POLICIES / "s3").resolve() == (REPOSITORY / "compose/object-store/policies").resolve()
    assert json.loads((POLICIES / "s3/ingest-events.json").read_text(encoding="utf-8"))["Version"] == "2012-10-17"


def test_a_gateway_to_another_store_has_rights_to_objects_alone() -> None:
    gcs = yaml.safe_load((POLICIES / "gcs/s3-gateway.yaml").read_text(encoding="utf-8"))["includedPermissions"]
    azure = json.loads((POLICIES / "azure/s3-gateway.json").read_text(encoding="utf-8"))

    assert {each.split(".")[1] for each in gcs} == {"buckets", "objects", "multipartUploads"}
    assert not any("*" in each or "setIamPolicy" in each for each in gcs)
    assert not any("*" in each for each in (*azure["Actions"], *azure["DataActions"]))
