"""Several jobs in one process: the same variables, but for what each has for itself."""

from collections.abc import Mapping

_PORT, _HEARTBEAT = "GAMELAKE_METRICS_PORT", "GAMELAKE_HEARTBEAT_FILE"


def shared(variables: Mapping[str, str], job: str, number: int) -> Mapping[str, str]:
    """The variables for one of the jobs: ports one after the other by their number from 0 on, and a file for each."""
    changed = dict(variables)
    if (port := variables.get(_PORT, "")).isdigit():
        changed[_PORT] = str(int(port) + number)
    if file := variables.get(_HEARTBEAT):
        changed[_HEARTBEAT] = f"{file}.{job}"
    return changed
