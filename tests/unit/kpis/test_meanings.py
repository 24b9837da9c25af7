"""Every column of every KPI table says what it means, and no meaning is of a column that is gone."""

from gamelake.kpis.definitions import ALL
from gamelake.kpis.meanings import MEANINGS
from gamelake.lake.comments import uncommented
from gamelake.lake.tables import delta_schema_json


def test_every_column_of_a_kpi_table_has_a_comment() -> None:
    assert {table.name: uncommented(delta_schema_json(table.schema)) for table in ALL} == {
        table.name: [] for table in ALL
    }
    assert {name for table in ALL for name in table.schema.names} == MEANINGS.keys()
