"""Writes the results of a validation: the table gold/validations, and Data Docs."""

import shutil
import uuid
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import MICROSECONDS_UTC, delta_schema_json
from gamelake.delta.comments import CommentsOf, no_comments
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.model.naming import VALIDATIONS
from gamelake.objects.store import Store
from gamelake.quality.suites.validations import ExpectationResult, ValidationRun

_DAY = "day"
_SCHEMA = pa.schema(
    [
        pa.field(_DAY, pa.date32()),
        pa.field("validated_at", MICROSECONDS_UTC),
        pa.field("suite", pa.string()),
        pa.field("game", pa.string()),
        pa.field("table", pa.string()),
        pa.field("expectation", pa.string()),
        pa.field("severity", pa.string()),
        pa.field("status", pa.string()),
        pa.field("observed", pa.float64()),
        pa.field("least", pa.float64()),
        pa.field("most", pa.float64()),
        pa.field("expect", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("owner", pa.string()),
        pa.field("why", pa.string()),
        pa.field("detail", pa.string()),
    ]
)

_SITE = "gamelake"


def write_results(
    store: Store, day: date, at: datetime, outcomes: Sequence[ExpectationResult], comments: CommentsOf = no_comments
) -> None:
    """Append the results of a validation of a day; `at` identifies the validation.

    Raises:
        CommitFailedError: other writers committed first in every attempt.
    """
    rows = pa.Table.from_pylist([_row(day, at, each) for each in outcomes], schema=_SCHEMA)
    file = write_rows(store, VALIDATIONS, rows.drop_columns([_DAY]), {_DAY: day.isoformat()})
    entry = TableFiles(table=VALIDATIONS, partition_by=(_DAY,), schema=delta_schema_json(_SCHEMA), files=(file,))
    with DeltaTables(store.location, comments) as tables:
        tables.append(entry, BatchTransaction(f"validation-{uuid.uuid4()}", 0))


def _row(day: date, at: datetime, outcome: ExpectationResult) -> dict[str, object]:
    suite, expected = outcome.suite, outcome.expected
    return {
        _DAY: day,
        "validated_at": at,
        "suite": suite.name.value,
        "game": suite.game,
        "table": suite.table,
        "expectation": expected.name,
        "severity": expected.weight.value,
        "status": outcome.status.value,
        "observed": outcome.observed,
        "least": expected.bounds.least,
        "most": expected.bounds.most,
        "expect": expected.expect,
        "fingerprint": expected.fingerprint,
        "owner": expected.owner,
        "why": expected.why,
        "detail": outcome.detail,
    }


def build_docs(validations: ValidationRun, folder: Path) -> Path:
    """Write the Data Docs site of a validation, which replaces the previous one. Return the path of its first page."""
    folder = folder.resolve()
    shutil.rmtree(folder / "expectations", ignore_errors=True)
    shutil.rmtree(folder / "validations", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    # Any: the declared type lacks `show_how_to_buttons`.
    site: Any = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    validations.context.add_data_docs_site(_SITE, site)
    validations.context.build_data_docs([_SITE])
    return folder / "index.html"
