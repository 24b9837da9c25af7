"""Synchronizes Kafka's users with the secrets, and its topics and access rules with `compose/kafka/topics.yaml`.

`python -m services.provision.topics`. It adds partitions but never removes any, and never deletes a topic. Rules that
are not declared are removed, so that users that are not listed have no access; so are users without a secret.
"""

from collections.abc import Sequence

from gamelake.model.credentials import ServerCredentials
from gamelake.program import OK, run
from services.provision.access_rules import declared_rules
from services.provision.declarations import DeclaredTopics, TopicSpec, load_topics
from services.provision.kafka import KafkaAdmin
from services.provision.provisioning import ChangeLog, ServiceRefusedError, wait_for
from services.provision.settings import TopicsSettings


def main() -> int:
    """Run once; 0 if Kafka is as declared."""
    settings = TopicsSettings.from_env()
    declared = load_topics(settings.file)
    kafka = KafkaAdmin(settings.kafka)
    found = wait_for("kafka", kafka.partitions, settings.patience)
    changes = ChangeLog("topics")
    try:
        synchronize_users(kafka, settings.admin, settings.users, changes)
        synchronize_topics(kafka, declared, found, changes)
        synchronize_rules(kafka, declared, changes)
    except ServiceRefusedError as error:
        raise ServiceRefusedError(f"{error}; correct {settings.file} and run this again") from error
    changes.close()
    return OK


def synchronize_topics(kafka: KafkaAdmin, declared: DeclaredTopics, found: dict[str, int], changes: ChangeLog) -> None:
    """Create missing topics, add partitions, set the settings that differ."""
    for topic in declared.topics:
        if topic.name in found:
            _align(kafka, topic, found[topic.name], changes)
        else:
            kafka.create_topic(topic)
            changes.note(f"created {topic.name} with {topic.partitions} partitions, {_as_text(topic.settings)}")
    for name in sorted(found.keys() - {topic.name for topic in declared.topics}):
        changes.skipped(f"the topic {name}, which the file does not name")


def synchronize_users(kafka: KafkaAdmin, admin: str, users: Sequence[ServerCredentials], changes: ChangeLog) -> None:
    """Set the passwords of all users but the admin's, which Kafka itself sets, and remove users without a secret.

    Kafka does not tell whether a password is right, so each is set again.
    """
    found = kafka.users()
    for user in users:
        kafka.set_password(user)
        if user.username not in found:
            changes.note(f"created the user {user.username}")
    for name in sorted(found - {admin, *(user.username for user in users)}):
        kafka.remove_password(name)
        changes.note(f"removed the user {name}, which has no secret")


def synchronize_rules(kafka: KafkaAdmin, declared: DeclaredTopics, changes: ChangeLog) -> None:
    """Add missing rules, then remove those that are not declared."""
    wanted, found = declared_rules(declared), kafka.rules()
    for rule in sorted(wanted - found, key=str):
        kafka.add_rule(rule)
        changes.note(f"{rule}")
    for rule in sorted(found - wanted, key=str):
        kafka.remove_rule(rule)
        changes.note(f"removed: {rule}")


def _align(kafka: KafkaAdmin, topic: TopicSpec, partitions: int, changes: ChangeLog) -> None:
    if partitions < topic.partitions:
        kafka.add_partitions(topic)
        changes.note(f"{topic.name} has {topic.partitions} partitions instead of {partitions}")
    elif partitions > topic.partitions:
        changes.skipped(
            f"{topic.name} has {partitions} partitions, more than the {topic.partitions} of the file;"
            " Kafka can't remove partitions, so declare that number in the file"
        )
    found = kafka.settings(topic.name)
    changed = {name: value for name, value in topic.settings.items() if found.get(name) != value}
    reset = sorted(found.keys() - topic.settings.keys())
    if changed or reset:
        kafka.alter_settings(topic.name, changed, reset)
    if changed:
        changes.note(f"{topic.name} has {_as_text(changed)}")
    if reset:
        changes.note(f"{topic.name} has the broker's default {', '.join(reset)}")


def _as_text(settings: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))


if __name__ == "__main__":
    run(main)
