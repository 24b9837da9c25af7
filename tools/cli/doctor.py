"""Checks of `gamelake doctor`: the machine, and the lakehouse of the running stack, or else of `make demo`."""

import subprocess

import msgspec

from gamelake.observability.health import HealthFinding, HealthVerdict, any_failed, failed
from tools.embedded.service import REPOSITORY
from tools.stack import COMPOSE

MACHINE = str(COMPOSE / "doctor.sh")
LAKEHOUSE = str(COMPOSE / "checkup.sh")


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """The findings; those of the lakehouse are empty where there is none."""

    machine: tuple[HealthFinding, ...]
    lakehouse: tuple[HealthFinding, ...]

    @property
    def any_failed(self) -> bool:
        """True if a check failed."""
        return any_failed((*self.machine, *self.lakehouse))


def examine() -> DoctorReport:
    """Run all checks; errors of a lakehouse that can't be read are on standard error."""
    lines = _printed(MACHINE).splitlines()
    return DoctorReport(machine=tuple(map(finding, lines)), lakehouse=_lakehouse(_printed(LAKEHOUSE, "--json")))


def finding(line: str) -> HealthFinding:
    """Parse a line of doctor.sh, such as `FAIL cores: the engine has 1; give it more`.

    Raises:
        ValueError: the line has another form.
    """
    verdict, _, rest = line.partition(" ")
    need, _, found = rest.partition(": ")
    found, _, remedy = found.rpartition("; ") if verdict != HealthVerdict.PASS else (found, "", "")
    return HealthFinding(verdict=HealthVerdict(verdict), need=need, found=found or remedy, remedy=remedy)


def _lakehouse(printed: str) -> tuple[HealthFinding, ...]:
    try:
        return msgspec.json.decode(printed, type=tuple[HealthFinding, ...]) if printed else ()
    except msgspec.DecodeError:
        return (failed("lakehouse", "it can't be read", "see the error above"),)


def _printed(*command: str) -> str:
    return subprocess.run(command, cwd=REPOSITORY, check=False, stdout=subprocess.PIPE, text=True).stdout
