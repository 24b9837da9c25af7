"""What the page on privacy calls personal is what the contract marks, no more and no less."""

import re
from pathlib import Path

import yaml
from google.protobuf.descriptor import Descriptor

from gamelake.schemas.event_schemas import newest_submitted
from services.gateway.personal.fields import personal_fields

_PAGE = Path("docs/privacy.md").read_text(encoding="utf-8")
_EVENT = newest_submitted(Path("contracts")).message
_TOPICS = Path("compose/kafka/topics.yaml")
_TEST_NAME = re.compile(r"`(test_\w+)`")
_TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


def documented() -> dict[str, str]:
    """The page's fields and their treatments."""
    rows = re.findall(r"^\| `([a-z_.]+)` \| (pseudonym|vault) \|", _PAGE, re.MULTILINE)
    return dict(rows)


def marked() -> dict[str, str]:
    """The contract's; a message that is marked is personal with all its fields."""
    fields = personal_fields(_EVENT)
    found = {fields.player: "pseudonym"}
    for path in fields.vault:
        holder: Descriptor | None = _EVENT
        for parent in path.parents:
            assert holder is not None
            holder = holder.fields_by_name[parent].message_type
        assert holder is not None
        inner = holder.fields_by_name[path.name].message_type
        names = [f"{path}.{each.name}" for each in inner.fields] if inner else [str(path)]
        found |= dict.fromkeys(names, "vault")
    return found


def test_the_fields_that_the_page_calls_personal_are_those_that_the_contract_marks() -> None:
    assert documented() == marked()


def test_kafka_keeps_records_for_as_long_as_the_page_says() -> None:
    (topic,) = (each for each in yaml.safe_load(_TOPICS.read_text())["topics"] if each["name"] == "events")

    assert re.findall(r"`retention_hours`[^|]*: (\d+) \|", _PAGE) == [str(topic["retention_hours"])]


def test_every_test_that_the_page_names_exists() -> None:
    tests = {name for path in Path("tests").rglob("test_*.py") for name in _TEST.findall(path.read_text())}

    assert set(_TEST_NAME.findall(_PAGE)) <= tests
