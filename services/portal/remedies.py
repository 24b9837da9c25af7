"""The commands that restart the services which Prometheus scrapes."""

from collections.abc import Mapping
from dataclasses import dataclass

# The stack's services whose scrape jobs have other names.
_SERVICES = {"certificates": "certificate-probe", "ingest-files": "ingest-events", "live-ops": "serving"}


@dataclass(frozen=True, slots=True)
class RestartCommands:
    """The command for each scrape job; None: the services are those of the stack.

    Example:
        >>> RestartCommands().of_job("live-ops")
        'compose/stack.sh restart serving'
        >>> RestartCommands({"serving": "kubectl rollout restart deployment/gold"}).of_job("kafka")
        ''
    """

    commands: Mapping[str, str] | None = None

    def of_job(self, job: str) -> str:
        """Return the command that restarts a job's service; empty if none is known."""
        if self.commands is None:
            return f"compose/stack.sh restart {_SERVICES.get(job, job)}"
        return self.commands.get(job, "")
