"""A file that no task can read is a dead letter by its notification, and all other files of its batch are read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, cast

import pyarrow as pa
import pytest

from gamelake.layers.bronze import RECORD_SCHEMA
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.arrays import Flags
from gamelake.model.naming import DEAD_LETTERS, SILVER_EVENTS
from gamelake.quality.checking import check_rules
from gamelake.quality.judging import RuleJudge
from gamelake.quality.rules_in_force import NoRules, RulesInForce, WatchedRules
from gamelake.schemas.registry import SchemaRegistry
from gamelake.streaming.dedup.cross_source import ConcurrentStream
from gamelake.streaming.driver.poison import PoisonAvoidingDecider
from gamelake.streaming.driver.table_columns import TableColumns
from gamelake.streaming.files.decider import FilesDecider
from gamelake.streaming.files.file_schema import NewestSchema
from gamelake.streaming.files.reading import FileReader, StoredFile
from gamelake.streaming.kafka.consumers import PartitionRange
from gamelake.streaming.kafka.source import PlannedOffsets
from tests.unit.quality.rules_and_rows import a_rule, written
from tests.unit.streaming.streams import TOPIC_ID, a_stream
from tests.unit.streaming.tasks import KafkaTaskRecord, as_batch, rows_of
from tests.unit.streaming_files.contract import SCHEMA_ID, line
from tests.unit.streaming_files.task_runs import DEDUP, FileRuns

FILES, POISON = 9, b"this kills the process that reads it"


@dataclass(frozen=True, slots=True)
class Partitions:
    """Elements that Spark distributes to tasks, processed in this process."""

    elements: Sequence[Any] = ()

    def parallelize(self, elements: Sequence[Any], _: int) -> Self:
        return replace(self, elements=elements)

    def mapPartitions(self, function: Callable[[Iterator[Any]], Iterable[Any]]) -> Self:  # noqa: N802 # Spark's name
        return replace(self, elements=list(function(iter(self.elements))))

    def collect(self) -> Sequence[Any]:
        return self.elements


@dataclass(frozen=True, slots=True)
class Session:
    """A session of Spark that has nothing but its context."""

    sparkContext: Partitions = field(default_factory=Partitions)  # noqa: N815 # Spark's name


@dataclass(frozen=True, slots=True)
class Notifications:
    """The notifications of a batch, in one partition."""

    records: Sequence[KafkaTaskRecord]
    spark: Session = field(default_factory=Session)

    def read(self) -> pa.Table:
        return pa.Table.from_batches([as_batch(self.records)], RECORD_SCHEMA)

    def part(self, ranges: Sequence[PartitionRange]) -> Self:
        (only,) = ranges
        return replace(self, records=[each for each in self.records if only.start <= each.offset < only.end])


def deciding(runs: FileRuns, rules: RulesInForce | None = None) -> PoisonAvoidingDecider[Any]:
    """The decisions of a process that starts now."""
    newest = NewestSchema(SchemaRegistry("http://127.0.0.1:1"), "events", check=lambda _: None)
    newest._known, newest._until = SCHEMA_ID, float("inf")  # noqa: SLF001 # what the registry has said
    decider = FilesDecider(
        plan=runs.plan(),
        columns=TableColumns({}),
        chooser=runs.chooser,
        newest=newest,
        rules=rules or NoRules(),
        events=ConcurrentStream(runs.store, "ingest_events"),
        cores=2,
        remembered=1_000,
    )
    generation = a_stream(runs.folder / "lakehouse").open(TOPIC_ID)
    return PoisonAvoidingDecider(decider, runs.store, generation, lambda: None)


@pytest.mark.parametrize("place", [0, 4, FILES - 1])
def test_a_file_that_fails_each_task_costs_no_other_file(
    runs: FileRuns, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = [line(event_id=f"event-{number}", event_time="2026-01-01T11:00:00Z") for number in range(FILES)]
    contents[place] = POISON
    values = [runs.write(f"{number}.json", content) for number, content in enumerate(contents)]
    read = FileReader.read

    def killing(self: FileReader, files: Iterable[StoredFile]) -> Iterator[Any]:
        there = list(files)
        if any(each.stored == POISON for each in there):
            raise RuntimeError("the Python worker exited unexpectedly")
        return read(self, there)

    monkeypatch.setattr(FileReader, "read", killing)
    records = Notifications([KafkaTaskRecord(value=value, offset=number) for number, value in enumerate(values)])

    decision = deciding(runs).decide(cast("Any", records), PlannedOffsets({0: 0}, {0: FILES}), DEDUP)

    assert decision.dead_letters == {"poisonous": 1}
    (letter,) = rows_of(runs.store, decision.tables, DEAD_LETTERS)
    assert (letter["value"], letter["detail"].split()[0]) == (values[place], "RuntimeError")
    assert {row["event_id"] for row in rows_of(runs.store, decision.tables, SILVER_EVENTS)} == {
        f"event-{number}" for number in range(FILES) if number != place
    }
    assert decision.files is not None
    assert decision.files.objects == {"taken": FILES - 1, "dead_letter": 1}


def test_a_file_that_the_rules_fail_on_costs_no_other_file(runs: FileRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [line(event_id=f"event-{number}", event_time="2026-01-01T11:00:00Z") for number in range(FILES)]
    values = [runs.write(f"{number}.json", content) for number, content in enumerate(contents)]
    exclude = RuleJudge.exclude

    def failing(self: RuleJudge, rows: pa.RecordBatch, *more: Any) -> Flags:  # noqa: ANN401 # as there
        if "event-4" in rows["event_id"].to_pylist():
            raise ZeroDivisionError
        return exclude(self, rows, *more)

    monkeypatch.setattr(RuleJudge, "exclude", failing)
    rules = written(runs.folder / "rules", a_rule("named", "event_name <> 'forbidden'"))
    careful = deciding(runs, WatchedRules(rules, partial(check_rules, columns=COMMON_SCHEMA, games=())))
    records = Notifications([KafkaTaskRecord(value=value, offset=number) for number, value in enumerate(values)])

    decision = careful.decide(cast("Any", records), PlannedOffsets({0: 0}, {0: FILES}), DEDUP)

    (letter,) = rows_of(runs.store, decision.tables, DEAD_LETTERS)
    assert (letter["value"], letter["detail"].split()[0]) == (values[4], "ZeroDivisionError")
    assert len(rows_of(runs.store, decision.tables, SILVER_EVENTS)) == FILES - 1
    assert sum(decision.judged.rows.values()) == FILES - 1
