"""Commands that run a job or a tool in a container of the stack, with the settings and secrets of a service."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tools.embedded.service import REPOSITORY
from tools.stack import COMPOSE, running_containers


@dataclass(frozen=True, slots=True)
class ContainerCommand:
    """A program that runs in a new container of a service; it has options and a `--help` of its own.

    Attributes:
        service: of compose.
        module: Python's name of the program.
        summary: one line for the list of commands.
        prints_json: whether it prints JSON anyway, and has no option `--json`.
    """

    service: str
    module: str
    summary: str
    prints_json: bool = True

    def command_line(self, arguments: Sequence[str], *, has_terminal: bool) -> tuple[str, ...]:
        """Return the command that runs it."""
        terminal = () if has_terminal else ("--no-TTY",)
        stack = (str(COMPOSE / "stack.sh"), "run", "--rm", "--no-deps", *terminal, self.service)
        options = [each for each in arguments if not (self.prints_json and each == "--json")]
        return (*stack, "python", "-m", self.module, *options)

    def run(self, arguments: Sequence[str]) -> int:
        """Run it with this process's input and output; returns its exit code.

        Raises:
            StartupError: the stack does not run.
        """
        if not {"--help", "-h"} & set(arguments):
            running_containers()
        has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        command = self.command_line(arguments, has_terminal=has_terminal)
        return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


COMMANDS: Mapping[str, ContainerCommand] = {
    "smoke": ContainerCommand(
        "tools", "tools.smoke", "Send one event and wait until Trino returns it.", prints_json=False
    ),
    "verify": ContainerCommand(
        "tools", "jobs.verify", "Compare the tables with the batches' manifests.", prints_json=False
    ),
    "restore": ContainerCommand("maintenance", "jobs.restore", "Restore tables to a version, a time or a batch."),
    "skip": ContainerCommand("ingest-events", "jobs.skip_records", "Dead-letter named records of Kafka undecoded."),
    "replay": ContainerCommand("maintenance", "jobs.replay", "Decode dead letters or quarantined rows again."),
    "clone": ContainerCommand("maintenance", "jobs.clone", "Clone tables without copying their files."),
    "forget": ContainerCommand("privacy", "jobs.forget_player", "Erase a player."),
    "rates": ContainerCommand("maintenance", "jobs.import_rates", "Import exchange rates, as CSV on standard input."),
    "store-report": ContainerCommand(
        "maintenance", "jobs.import_store_report", "Import an app store's sales report from standard input."
    ),
    "acquisition-cost": ContainerCommand(
        "maintenance", "jobs.import_acquisition_cost", "Import the cost of new players, as CSV on standard input."
    ),
    "export": ContainerCommand("privacy", "jobs.export_player", "Export the data that is stored about a player."),
}
