"""Judges suites by Great Expectations: one batch each, all figures of which are computed in one pass.

Each expectation is on the sum of a column, as its aggregates are those that the Spark engine bundles: whatever looks at
single values runs a job of its own.
"""

import logging
import os
from collections.abc import Iterator
from datetime import date
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from gamelake.quality.check_findings import CheckStatus
from gamelake.quality.suites.expectations import Expectation, ValidationSuite, Weight

# Read when the package is imported: nothing about a run leaves the machine.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
import great_expectations as gx  # as said above
from great_expectations.core import ExpectationSuite, ExpectationValidationResult
from great_expectations.core.batch_definition import BatchDefinition
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.expectations.core.expect_column_sum_to_be_between import ExpectColumnSumToBeBetween
from great_expectations.expectations.metadata_types import FailureSeverity

log = logging.getLogger(__name__)

_SOURCE = "lakehouse"


class ExpectationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one expectation came to; `observed` is None where it could not be judged, for which `detail` says why."""

    suite: ValidationSuite
    expected: Expectation
    status: CheckStatus
    observed: float | None = None
    detail: str = ""

    def with_detail(self, detail: str) -> "ExpectationResult":
        """The same with more said about it, where it could be judged."""
        return self if self.status is CheckStatus.SKIPPED else msgspec.structs.replace(self, detail=detail)

    @property
    def is_failure(self) -> bool:
        """Whether it failed, and somebody has to look."""
        return self.status is CheckStatus.FAILED and self.expected.weight is not Weight.INFO

    @property
    def is_critical(self) -> bool:
        """Whether it failed, and weighs so much that figures made of the table should not be relied on."""
        return self.status is CheckStatus.FAILED and self.expected.weight is Weight.CRITICAL


class ValidationRun:
    """One run of suites, all for one day, in the Spark session that there is; remembers what Data Docs are made of."""

    def __init__(self, day: date) -> None:
        self.day = day
        self.context = _context()
        self._run = RunIdentifier(run_name=day.isoformat())
        self._source = self.context.data_sources.add_spark(_SOURCE, persist=False)

    def judge(self, suite: ValidationSuite, batch: DataFrame) -> Iterator[ExpectationResult]:
        """Judge one suite; the batch has a column for each figure that is expected."""
        judged = self.context.suites.add(
            ExpectationSuite(suite.title, expectations=[_expectation(each) for each in suite.expected])
        )
        definition = self.context.validation_definitions.add(
            gx.ValidationDefinition(name=suite.title, data=self._batch(suite), suite=judged)
        )
        result = definition.run(batch_parameters={"dataframe": batch}, run_id=self._run)
        by_name = {each.name: each for each in suite.expected}
        for each in result.results:
            yield _outcome(suite, by_name[_name_of(each)], each)

    def _batch(self, suite: ValidationSuite) -> BatchDefinition[Any]:
        asset = self._source.add_dataframe_asset(suite.title)
        return asset.add_batch_definition_whole_dataframe(self.day.isoformat())


def _context() -> EphemeralDataContext:
    return gx.get_context(
        mode="ephemeral",
        project_config=DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(),
            progress_bars=ProgressBarsConfig(globally=False),
            analytics_enabled=False,
        ),
    )


def _expectation(expected: Expectation) -> ExpectColumnSumToBeBetween:
    said = {"owner": expected.owner, "why": expected.why, "fingerprint": expected.fingerprint}
    return ExpectColumnSumToBeBetween(
        column=expected.name,
        min_value=expected.bounds.least,
        max_value=expected.bounds.most,
        severity=FailureSeverity(expected.weight.value),
        description=f"{expected.name}: {expected.expect}",
        meta={"expect": expected.expect, **{name: text for name, text in said.items() if text}},
    )


def _name_of(result: ExpectationValidationResult) -> str:
    configuration = result.expectation_config
    return str(configuration.kwargs["column"]) if configuration else ""


def _outcome(suite: ValidationSuite, expected: Expectation, result: ExpectationValidationResult) -> ExpectationResult:
    observed = result.result.get("observed_value")
    if observed is None:
        return ExpectationResult(suite=suite, expected=expected, status=CheckStatus.SKIPPED, detail=_reason(result))
    status = CheckStatus.PASSED if result.success else CheckStatus.FAILED
    return ExpectationResult(suite=suite, expected=expected, status=status, observed=float(observed))


def _reason(result: ExpectationValidationResult) -> str:
    """Why there is no figure."""
    info = result.exception_info or {}
    inner = info if "exception_message" in info else next(iter(info.values()), {})
    return str((inner or {}).get("exception_message") or "there are no rows")[:500]
