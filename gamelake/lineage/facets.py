"""The facets that OpenLineage has no words for: Protobuf schemas, and queries."""

import attr
from openlineage.client.facet_v2 import DatasetFacet, RunFacet

from gamelake.lake.actions import ENGINE

PRODUCER = f"urn:{ENGINE.lower().replace('/', ':')}"


@attr.define
class ProtobufSchema:
    """A schema that rows came in; the subject and its version are not known while the registry is silent."""

    id: int
    subject: str | None = None
    version: int | None = None


@attr.define
class ProtobufSchemasDatasetFacet(DatasetFacet):
    """The Protobuf schemas that the rows of a table, or the records of a topic, came in."""

    schemas: list[ProtobufSchema] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return f"{PRODUCER}:facets:protobuf_schemas"


@attr.define
class QueryRunFacet(RunFacet):
    """The Spark streaming query that a run is, by the id that goes with its checkpoint."""

    query: str = ""

    @staticmethod
    def _get_schema() -> str:
        return f"{PRODUCER}:facets:query"
