"""Times beyond the years of Python's datetime, which tables have, since Protobuf's timestamps have them."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from gamelake.scans.far_times import python_values
from gamelake.serving.sql.output import OutputFormat, written

_NEAR, _FAR = datetime(2026, 1, 1, tzinfo=UTC), "9223372036854775807 microseconds since 1970"
_TIMES = pa.array([1_767_225_600_000_000, 2**63 - 1, None], pa.int64()).view(pa.timestamp("us", "UTC"))
_OFFSETS = pa.array([0, 2, 3], pa.int32())


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (_TIMES, [_NEAR, _FAR, None]),
        (_TIMES.slice(1), [_FAR, None]),
        (pa.StructArray.from_arrays([_TIMES], ["at"]), [{"at": _NEAR}, {"at": _FAR}, {"at": None}]),
        (pa.ListArray.from_arrays(_OFFSETS, _TIMES), [[_NEAR, _FAR], [None]]),
        (
            pa.MapArray.from_arrays(_OFFSETS, pa.array(["a", "b", "c"]), _TIMES),
            [[("a", _NEAR), ("b", _FAR)], [("c", None)]],
        ),
        (_TIMES.view(pa.timestamp("us")), [_NEAR.replace(tzinfo=None), _FAR, None]),
        (pa.array([1.5, None]), [1.5, None]),
    ],
)
def test_a_time_that_python_has_not_is_a_text_and_the_others_stay(column: pa.Array, values: list[object]) -> None:
    assert python_values(pa.chunked_array([column])) == values


@pytest.mark.parametrize("form", OutputFormat)
def test_an_answer_with_such_a_time_is_written(form: OutputFormat) -> None:
    times = _TIMES.view(pa.timestamp("us"))

    text = written(pa.table({"name": ["near", "far", "none"], "at": times}), form)

    assert all(name in text for name in ("near", "far", "none", "2026-01-01"))
