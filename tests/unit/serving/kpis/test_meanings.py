"""Every column of every KPI table says what it means, and no meaning is of a column that is gone."""

from gamelake.serving.kpis.definitions import ALL, MEANINGS
from gamelake.storage.comments import uncommented
from gamelake.storage.tables import delta_schema_json


def test_every_column_of_a_kpi_table_has_a_comment() -> None:
    assert {table.name: uncommented(delta_schema_json(table.schema)) for table in ALL} == {
        table.name: [] for table in ALL
    }
    assert {name for table in ALL for name in table.schema.names} == MEANINGS.keys()
