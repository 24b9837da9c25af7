"""Faults that the platform had, each put back by undoing its fix."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from gamelake.contract import located_yaml
from gamelake.delta.tables import DeltaTables
from gamelake.layers.bronze import RECORD_SCHEMA
from gamelake.model.arrays import Ints
from gamelake.model.errors import ContractError, IncompatibleSchemaError
from gamelake.quality import rules
from gamelake.quality.rules_in_force import WatchedRules
from gamelake.schemas import schema_cache
from gamelake.schemas.decoder import MessageDecoder
from gamelake.streaming.driver.poison import PoisonAvoidingDecider
from gamelake.streaming.driver.table_columns import TableColumns
from gamelake.streaming.files import reading, refusals
from gamelake.streaming.files.arrivals.landing import LandingBucket
from gamelake.streaming.files.arrivals.notifications import ObjectName
from gamelake.streaming.files.formats import parquet
from gamelake.streaming.kafka import consumers as kafka_consumers
from gamelake.streaming.outages import OUTAGES
from services.gateway.events.json_events import JsonEvents
from services.gateway.limits.memory_budget import Reservation
from tests.unit.poison import budgets, gateway_attacks

Undo = Callable[[pytest.MonkeyPatch], None]


def without_the_search_for_poison(undone: pytest.MonkeyPatch) -> None:
    """A batch that fails is not decided again, which would hide other faults."""

    def decide(self: PoisonAvoidingDecider[Any], records: Any, planned: Any, plan: Any) -> Any:  # noqa: ANN401 # as there
        return self._decider.decide(records, planned, plan)

    undone.setattr(PoisonAvoidingDecider, "decide", decide)


def conflicts_in_a_few_tables_only(undone: pytest.MonkeyPatch) -> None:
    def agree_on(self: TableColumns, run: Callable[[], Any]) -> Any:  # noqa: ANN401 # as there
        for _ in range(3):
            result, files = run()
            ordered = sorted(files, key=lambda file: (file.table, file.newest_schema))
            try:
                return result, tuple(
                    entry for _, some in groupby(ordered, key=lambda file: file.table) for entry in self.agree(some)
                )
            except IncompatibleSchemaError as error:
                last = error
        raise last

    without_the_search_for_poison(undone)
    undone.setattr(TableColumns, "agree_on", agree_on)


def unknown_schemas_without_a_budget(undone: pytest.MonkeyPatch) -> None:
    undone.setattr(schema_cache, "_BUDGET", timedelta.max)
    # The budget is one second: an attack that takes longer than this one need not end.
    undone.setattr(budgets, "_SECONDS", 5)


def tables_that_refuse_what_is_known_only(undone: pytest.MonkeyPatch) -> None:
    @contextmanager
    def refusals_of(self: DeltaTables, table: str) -> Iterator[None]:
        del self, table
        yield

    undone.setattr(DeltaTables, "_refusals_of", refusals_of)


def rules_in_another_encoding(undone: pytest.MonkeyPatch) -> None:
    def take(self: WatchedRules) -> None:
        try:
            self.in_force = self._check(rules.load_rules(self._folder))
        except ContractError as error:
            self.refused = str(error)

    without_the_search_for_poison(undone)
    undone.setattr(WatchedRules, "_take", take)
    undone.setattr(located_yaml, "refused_by_file", lambda *_: nullcontext())
    undone.setattr(located_yaml, "_text_of", lambda path: path.read_text(encoding="utf-8"))


def timestamps_of_any_year(undone: pytest.MonkeyPatch) -> None:
    def arrival_times(milliseconds: pa.Array) -> pa.Array:
        kind = RECORD_SCHEMA.field("timestamp").type
        return pa.array(milliseconds.to_numpy() * 1000, pa.int64()).cast(kind)

    undone.setattr(kafka_consumers, "arrival_times", arrival_times)


def names_that_a_client_refuses(undone: pytest.MonkeyPatch) -> None:
    def read(self: LandingBucket, name: ObjectName, limit: int) -> memoryview:
        del limit
        return memoryview(self._get(name).bytes())

    undone.setattr(LandingBucket, "read", read)
    undone.setattr(refusals, "OUTAGES", (*OUTAGES, ValueError))


def files_that_expand_in_memory(undone: pytest.MonkeyPatch) -> None:
    row_bytes, expanded = parquet._row_bytes, parquet._expanded  # noqa: SLF001 # what is undone
    undone.setattr(reading, "_KEPT_BYTES", 10**12)
    undone.setattr(reading, "_SHORTEST_EVENT", 0)
    undone.setattr(parquet, "_row_bytes", lambda rows: row_bytes(expanded(rows)))


def bodies_without_a_budget_of_memory(undone: pytest.MonkeyPatch) -> None:
    undone.setattr(Reservation, "largest", property(lambda _: 10**12))


def events_that_are_converted_in_place(undone: pytest.MonkeyPatch) -> None:
    decode, event_of = JsonEvents._decode, JsonEvents._event_of  # noqa: SLF001 # what is undone

    def parsed(self: JsonEvents, body: bytes, max_events: int) -> Sequence[Any]:
        return [_parsed(event) for event in decode(self, body, max_events)]

    undone.setattr(JsonEvents, "_decode", parsed)
    undone.setattr(
        JsonEvents, "_event_of", lambda self, event: event if isinstance(event, dict) else event_of(self, event)
    )
    undone.setattr(gateway_attacks, "prepared_twice", lambda prepare, batches: prepare(batches))


def _parsed(event: Any) -> Any:  # noqa: ANN401 # a struct, or the text of an event
    with suppress(msgspec.DecodeError, TypeError, RecursionError, UnicodeDecodeError):
        return msgspec.json.decode(event)
    return event


def records_that_expand_in_memory(undone: pytest.MonkeyPatch) -> None:
    def all_positions(self: MessageDecoder, bodies: pa.BinaryArray, too_large: list[int]) -> Ints:
        del self, too_large
        return np.arange(len(bodies))

    undone.setattr(MessageDecoder, "_without_large", all_positions)
