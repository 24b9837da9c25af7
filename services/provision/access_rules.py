"""Kafka's access rules (ACLs) as comparable values: the declared ones, and those that Kafka has."""

from collections.abc import Iterable
from dataclasses import dataclass

from confluent_kafka.admin import (  # type: ignore[attr-defined] # its stubs do not export them
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from services.provision.declarations import DeclaredTopics, TopicSpec

CLUSTER = "kafka-cluster"
EVERY_HOST = "*"
_USER = "User:"
ANY_RULE = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type] # its stubs do not know that None stands for any
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type] # as above
    None,  # type: ignore[arg-type] # as above
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@dataclass(frozen=True, slots=True, order=True)
class AccessRule:
    """Permission of a principal for one operation on a resource, or on all resources with a prefix."""

    principal: str
    operation: AclOperation
    resource: ResourceType
    name: str
    pattern: ResourcePatternType = ResourcePatternType.LITERAL
    host: str = EVERY_HOST
    permission: AclPermissionType = AclPermissionType.ALLOW

    def __str__(self) -> str:
        """The rule as text."""
        verb = "may" if self.permission is AclPermissionType.ALLOW else "must not"
        resource = (
            "the cluster" if self.resource is ResourceType.BROKER else f"{self.resource.name.lower()} {self.name}"
        )
        star = "*" if self.pattern is ResourcePatternType.PREFIXED else ""
        host = "" if self.host == EVERY_HOST else f" from {self.host}"
        return f"{self.principal} {verb} {self.operation.name.lower()} on {resource}{star}{host}"

    @classmethod
    def of(cls, binding: AclBinding) -> "AccessRule":
        """Return the rule of a binding that Kafka has."""
        return cls(
            principal=binding.principal,
            operation=AclOperation(binding.operation),
            resource=ResourceType(binding.restype),
            name=binding.name,
            pattern=ResourcePatternType(binding.resource_pattern_type),
            host=binding.host,
            permission=AclPermissionType(binding.permission_type),
        )

    def as_binding(self) -> AclBinding:
        """Return the binding to create the rule with."""
        return AclBinding(
            self.resource, self.name, self.pattern, self.principal, self.host, self.operation, self.permission
        )

    def as_filter(self) -> AclBindingFilter:
        """Return the filter that matches only this rule."""
        return AclBindingFilter(
            self.resource, self.name, self.pattern, self.principal, self.host, self.operation, self.permission
        )


def declared_rules(declared: DeclaredTopics) -> frozenset[AccessRule]:
    """Return exactly the rules that the topics' writers, readers, observers and cleaners need."""
    kinds = (_writing, _reading, _observing, _cleaning)
    return frozenset(rule for topic in declared.topics for rules_of in kinds for rule in rules_of(topic))


def _writing(topic: TopicSpec) -> Iterable[AccessRule]:
    for user in topic.writers:
        principal = _USER + user
        yield AccessRule(principal, AclOperation.WRITE, ResourceType.TOPIC, topic.name)
        yield AccessRule(principal, AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
        yield AccessRule(principal, AclOperation.IDEMPOTENT_WRITE, ResourceType.BROKER, CLUSTER)


def _reading(topic: TopicSpec) -> Iterable[AccessRule]:
    for reader in topic.readers:
        principal = _USER + reader.user
        yield AccessRule(principal, AclOperation.READ, ResourceType.TOPIC, topic.name)
        yield AccessRule(principal, AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
        yield AccessRule(principal, AclOperation.READ, ResourceType.GROUP, reader.groups, ResourcePatternType.PREFIXED)


def _observing(topic: TopicSpec) -> Iterable[AccessRule]:
    for user in topic.observers:
        for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS):
            yield AccessRule(_USER + user, operation, ResourceType.TOPIC, topic.name)


def _cleaning(topic: TopicSpec) -> Iterable[AccessRule]:
    for user in topic.cleaners:
        for operation in (AclOperation.DESCRIBE, AclOperation.DELETE):
            yield AccessRule(_USER + user, operation, ResourceType.TOPIC, topic.name)
