"""Validates suites with Great Expectations: one batch for each suite, whose values are computed in one pass.

Each expectation is on the sum of a column: the Spark engine computes such aggregates together, while expectations on
single values run one job each.
"""

import os
from collections.abc import Iterator
from datetime import date
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from gamelake.quality.check_findings import CheckStatus
from gamelake.quality.gold_check import GOLD_CHECK
from gamelake.quality.suites.expectations import Expectation, ValidationSuite, Weight

# The package reads it at import: no analytics are sent.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
import great_expectations as gx  # after the variable is set
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

_SOURCE = "lakehouse"


class ExpectationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an expectation; without a value `observed` is None, and `detail` is the reason."""

    suite: ValidationSuite
    expected: Expectation
    status: CheckStatus
    observed: float | None = None
    detail: str = ""

    def with_detail(self, detail: str) -> "ExpectationResult":
        """Return the same result with a detail, unless it has a reason."""
        return self if self.observed is None else msgspec.structs.replace(self, detail=detail)

    @property
    def is_failure(self) -> bool:
        """True if it failed with a severity that fails the run."""
        return self.status is CheckStatus.FAILED and self.expected.weight is not Weight.INFO

    @property
    def holds_gold(self) -> bool:
        """True if it failed with a severity that holds gold back; a hold repairs nothing in gold itself."""
        is_critical = self.status is CheckStatus.FAILED and self.expected.weight is Weight.CRITICAL
        return is_critical and self.expected.name != GOLD_CHECK


class ValidationRun:
    """One validation of a day, in the active Spark session; keeps the results for Data Docs."""

    def __init__(self, day: date) -> None:
        self.day = day
        self.context = _context()
        self._run = RunIdentifier(run_name=day.isoformat())
        self._source = self.context.data_sources.add_spark(_SOURCE, persist=False)

    def validate(self, suite: ValidationSuite, batch: DataFrame) -> Iterator[ExpectationResult]:
        """Validate a suite; the batch has a column of doubles for each expectation."""
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
    meta = {"owner": expected.owner, "why": expected.why, "fingerprint": expected.fingerprint}
    return ExpectColumnSumToBeBetween(
        column=expected.name,
        min_value=expected.bounds.least,
        max_value=expected.bounds.most,
        severity=FailureSeverity(expected.weight.value),
        description=f"{expected.name}: {expected.expect}",
        meta={"expect": expected.expect, **{name: text for name, text in meta.items() if text}},
    )


def _name_of(result: ExpectationValidationResult) -> str:
    configuration = result.expectation_config
    return str(configuration.kwargs["column"]) if configuration else ""


def _outcome(suite: ValidationSuite, expected: Expectation, result: ExpectationValidationResult) -> ExpectationResult:
    observed = result.result.get("observed_value")
    if observed is None:
        # A value that should have been computed but was not is unchecked, so it does not pass.
        return ExpectationResult(suite=suite, expected=expected, status=CheckStatus.FAILED, detail=_reason(result))
    status = CheckStatus.PASSED if result.success else CheckStatus.FAILED
    return ExpectationResult(suite=suite, expected=expected, status=status, observed=float(observed))


def _reason(result: ExpectationValidationResult) -> str:
    """Why there is no value."""
    info = result.exception_info or {}
    inner = info if "exception_message" in info else next(iter(info.values()), {})
    return str((inner or {}).get("exception_message") or "Great Expectations gave no reason")[:500]
