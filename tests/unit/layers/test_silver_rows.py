"""Events as silver rows: which columns they get, and which messages can't be events at all."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.layers.silver import COMMON_SCHEMA, common_columns, conform
from gamelake.model.errors import IncompatibleSchemaError
from tests.unit.properties import examples

_MOMENT = pa.timestamp("us", "UTC")


def _event(**columns: pa.Array) -> pa.RecordBatch:
    required = {
        "event_time": pa.array([datetime(2026, 1, 1, tzinfo=UTC)], _MOMENT),
        "game_name": pa.array(["Kart Rumble"]),
    }
    return pa.RecordBatch.from_pydict(required | columns)


def _conformed(event: pa.RecordBatch) -> pa.RecordBatch:
    return conform(event, pa.array([3]), pa.array([14]))


def test_filter_columns_come_first_and_coordinates_last() -> None:
    event = _event(level=pa.array([5]), event_id=pa.array(["x"]), event_name=pa.array(["purchase"]))

    names = _conformed(event).schema.names

    assert names == ["event_time", "event_name", "game_name", "level", "kafka_partition", "kafka_offset", "event_id"]


def test_the_parameters_of_an_event_become_columns_of_their_own() -> None:
    params = pa.array([{"platform": "ios", "game_name": "inner", "amount": 1.5}])

    row = _conformed(_event(event_params=params)).to_pylist()[0]

    assert (row["platform"], row["amount"]) == ("ios", 1.5)
    assert (row["game_name"], row["event_params_game_name"]) == ("Kart Rumble", "inner")


def test_parameters_that_were_not_sent_are_null() -> None:
    params = pa.array([None], pa.struct([("platform", pa.string())]))

    assert _conformed(_event(event_params=params))["platform"].to_pylist() == [None]


def test_parameters_that_are_not_a_message_stay_one_column() -> None:
    assert _conformed(_event(event_params=pa.array(["a=1"])))["event_params"].to_pylist() == ["a=1"]


def test_an_empty_text_of_a_common_column_is_null_and_any_other_stays() -> None:
    event = _event(
        session_id=pa.array([""]), event_params=pa.array([{"app_version": "", "mode": "", "platform": "ios"}])
    )

    row = _conformed(event.set_column(1, "game_name", pa.array([""]))).to_pylist()[0]

    assert (row["session_id"], row["app_version"], row["platform"]) == (None, None, "ios")
    assert (row["game_name"], row["mode"]) == ("", "")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"kafka_offset": pa.array([1])}, "named kafka_offset, which is a column of the platform"),
        ({"Event_Date": pa.array(["x"])}, "named event_date, which is a column of the platform"),
        ({"event_name": pa.array([1])}, "column event_name is string in the table and int64 in the record"),
        ({"event_time": pa.array(["today"])}, "column event_time is timestamp"),
        (
            {"event_params": pa.array([{"game_name": "x"}]), "event_params_game_name": pa.array(["y"])},
            "two fields for the column event_params_game_name",
        ),
    ],
)
def test_a_message_that_can_not_be_an_event_is_refused(columns: dict[str, pa.Array], problem: str) -> None:
    with pytest.raises(IncompatibleSchemaError, match=problem):
        _conformed(_event(**columns))


@pytest.mark.parametrize("missing", ["event_time", "game_name"])
def test_a_message_without_the_columns_of_routing_is_refused(missing: str) -> None:
    with pytest.raises(IncompatibleSchemaError, match=f"the message has no {missing}"):
        _conformed(_event().drop_columns([missing]))


def test_the_common_columns_are_null_where_a_game_has_none() -> None:
    common = common_columns(_conformed(_event()))

    assert common.schema == COMMON_SCHEMA
    assert common["platform"].to_pylist() == [None]
    assert common["kafka_offset"].to_pylist() == [14]


def test_price_currency_and_order_of_a_purchase_and_the_revenue_of_an_ad_are_common_columns() -> None:
    purchase = pa.StructArray.from_arrays(
        [pa.array(["EUR", "", None]), pa.array([4_990_000, 5, None]), pa.array(["order 1", "", None])],
        names=["currency", "price_micros", "order_id"],
        mask=pa.array([False, False, True]),
    )
    ad = pa.StructArray.from_arrays(
        [pa.array([None, None, "USD"]), pa.array([None, None, 4_000], pa.int64())],
        names=["currency", "revenue_micros"],
        mask=pa.array([True, True, False]),
    )
    times = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 3, _MOMENT)
    rows = pa.RecordBatch.from_pydict({"event_time": times, "purchase": purchase, "ad": ad})

    common = common_columns(rows)

    assert common["currency"].to_pylist() == ["EUR", None, "USD"]
    assert common["price_micros"].to_pylist() == [4_990_000, 5, 4_000]
    assert common["order_id"].to_pylist() == ["order 1", None, None]


def test_the_source_of_an_install_is_a_common_column() -> None:
    install = pa.StructArray.from_arrays(
        [pa.array(["meta", "", None]), pa.array(["autumn", None, None])],
        names=["source", "campaign"],
        mask=pa.array([False, False, True]),
    )
    times = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 3, _MOMENT)

    common = common_columns(pa.RecordBatch.from_pydict({"event_time": times, "install": install}))

    assert common["install_source"].to_pylist() == ["meta", None, None]


_OTHER_TYPES = st.sampled_from(
    [
        *(pa.int32(), pa.float64(), pa.bool_(), pa.binary(), pa.list_(pa.string()), pa.struct([("a", pa.int32())])),
        *(
            pa.struct([(name, kind)])
            for name in ("currency", "price_micros")
            for kind in (pa.int32(), pa.list_(pa.int64()))
        ),
        pa.string(),
    ]
)


@examples(50)
@given(
    types=st.dictionaries(
        st.sampled_from(
            ["country", "currency", "price_micros", "order_id", "install_source", "install", "purchase", "ad"]
        ),
        _OTHER_TYPES,
    )
)
def test_a_message_may_use_the_names_of_prices_for_anything_else(types: dict[str, pa.DataType]) -> None:
    event = _event(**{name: pa.nulls(1, kind) for name, kind in types.items()})

    rows = _conformed(event)

    assert common_columns(rows).schema == COMMON_SCHEMA
    assert types.keys() <= set(rows.schema.names)
