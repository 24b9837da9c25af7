"""Brings Kafka's topics and access rules in line with `compose/kafka/topics.yaml`.

`python -m services.provision.topics`. Partitions are added and never removed, and no topic is ever deleted. A rule that
the file does not give is removed, so that whoever is not listed is denied.
"""

from gamelake.program import OK, run
from services.provision.access_rules import declared_rules
from services.provision.declarations import DeclaredTopics, TopicSpec, load_topics
from services.provision.kafka import Kafka
from services.provision.provisioning import Changes, ServiceRefusedError, wait_for
from services.provision.settings import TopicsSettings


def main() -> int:
    """Run once; 0 when Kafka is as declared."""
    settings = TopicsSettings.from_env()
    declared = load_topics(settings.file)
    kafka = Kafka(settings.kafka)
    found = wait_for("kafka", kafka.partitions, settings.patience)
    changes = Changes("topics")
    try:
        bring_topics_in_line(kafka, declared, found, changes)
        bring_rules_in_line(kafka, declared, changes)
    except ServiceRefusedError as error:
        raise ServiceRefusedError(f"{error}; correct {settings.file} and run this again") from error
    changes.close()
    return OK


def bring_topics_in_line(kafka: Kafka, declared: DeclaredTopics, found: dict[str, int], changes: Changes) -> None:
    """Make what is missing, add partitions, set what differs."""
    for topic in declared.topics:
        if topic.name in found:
            _align(kafka, topic, found[topic.name], changes)
        else:
            kafka.create_topic(topic)
            changes.note(f"made {topic.name} with {topic.partitions} partitions, {_as_text(topic.settings)}")
    for name in sorted(found.keys() - {topic.name for topic in declared.topics}):
        changes.left_alone(f"the topic {name}, which the file does not name")


def bring_rules_in_line(kafka: Kafka, declared: DeclaredTopics, changes: Changes) -> None:
    """Add the rules that are missing, then remove those that nobody declared."""
    wanted, found = declared_rules(declared), kafka.rules()
    for rule in sorted(wanted - found, key=str):
        kafka.add_rule(rule)
        changes.note(f"{rule}")
    for rule in sorted(found - wanted, key=str):
        kafka.remove_rule(rule)
        changes.note(f"no more: {rule}")


def _align(kafka: Kafka, topic: TopicSpec, partitions: int, changes: Changes) -> None:
    if partitions < topic.partitions:
        kafka.add_partitions(topic)
        changes.note(f"{topic.name} has {topic.partitions} partitions instead of {partitions}")
    elif partitions > topic.partitions:
        changes.left_alone(
            f"{topic.name} has {partitions} partitions, more than the {topic.partitions} of the file;"
            " Kafka can't remove any, so say so in the file"
        )
    found = kafka.settings(topic.name)
    changed = {name: value for name, value in topic.settings.items() if found.get(name) != value}
    reset = sorted(found.keys() - topic.settings.keys())
    if changed or reset:
        kafka.alter_settings(topic.name, changed, reset)
    if changed:
        changes.note(f"{topic.name} has {_as_text(changed)}")
    if reset:
        changes.note(f"{topic.name} has the broker's own {', '.join(reset)}")


def _as_text(settings: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))


if __name__ == "__main__":
    run(main)
