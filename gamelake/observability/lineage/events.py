"""A flow of a job as an OpenLineage event of one of its runs.

Source: OpenLineage specification 2-0-2, "Run State Update".
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    JobFacet,
    RunFacet,
    documentation_job,
    error_message_run,
    job_type_job,
    parent_run,
    sql_job,
)
from openlineage.client.uuid import generate_new_uuid

from gamelake.observability.lineage.datasets import PRODUCER, Datasets, QueryRunFacet
from gamelake.observability.lineage.flow import Flow, RunKind

NAMESPACE = "gamelake"
_DIALECT = "duckdb"


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one process: each job's own, all of them parts of the process's."""

    program: str
    _ids: dict[str, str]

    @classmethod
    def of(cls, program: str) -> "Runs":
        """Begin new runs of a program of `jobs/`."""
        return cls(program, {program: str(generate_new_uuid())})

    def id(self, job: str) -> str:
        """Return the id of a job's run; the same one each time."""
        if job not in self._ids:
            self._ids[job] = str(generate_new_uuid())
        return self._ids[job]


@dataclass(frozen=True, slots=True)
class EventMaker:
    """Makes events of the runs of one process."""

    runs: Runs
    datasets: Datasets

    def event(self, flow: Flow, state: RunState, error: str = "") -> RunEvent:
        """Return an event of a job's state, with all current facets."""
        return RunEvent(
            eventType=state,
            eventTime=datetime.now(UTC).isoformat(),
            run=Run(self.runs.id(flow.job), facets=self._run_facets(flow, error)),
            job=Job(NAMESPACE, flow.job, facets=_job_facets(flow)),
            inputs=[self.datasets.read(place) for place in flow.inputs],
            outputs=[self.datasets.written(place) for place in flow.outputs],
            producer=PRODUCER,
        )

    def _run_facets(self, flow: Flow, error: str) -> dict[str, RunFacet]:
        facets: dict[str, RunFacet] = {}
        if flow.job != self.runs.program:
            program = self.runs.program
            facets["parent"] = parent_run.ParentRunFacet(
                run=parent_run.Run(self.runs.id(program)), job=parent_run.Job(NAMESPACE, program)
            )
        if flow.query:
            facets["gamelake_query"] = QueryRunFacet(query=flow.query)
        if error:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error, "PYTHON")
        return facets


def _job_facets(flow: Flow) -> dict[str, JobFacet]:
    how = job_type_job.EmissionPattern(
        eventTrigger="PERIODIC" if flow.kind is RunKind.STREAMING else "EVENT_BASED", eventContentMode="ACCUMULATIVE"
    )
    facets: dict[str, JobFacet] = {
        "documentation": documentation_job.DocumentationJobFacet(flow.description),
        "jobType": job_type_job.JobTypeJobFacet(flow.kind.value, "GAMELAKE", "JOB", how),
    }
    if flow.sql:
        facets["sql"] = sql_job.SQLJobFacet(flow.sql, _DIALECT)
    return facets
