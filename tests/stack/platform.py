"""The running stack, as a test sees and mistreats it."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from deltalake import DeltaTable

from gamelake.ledger.reconciliation import Reconciliation, reconcile
from gamelake.objects.store import Location, Store
from tests.embedded.sending import Sender
from tests.support.eventually import eventually
from tools import stack as running

ROOT = Path(__file__).parents[2]
SECRETS = ROOT / "compose/secrets"
_COMMAND_SECONDS = 300


def gamelake(*arguments: str) -> str:
    """The output of the command line `gamelake`, which has to succeed."""
    command = (sys.executable, "-m", "gamelake", *arguments)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Stack:
    """The services through docker compose, the tables through their published store."""

    def compose(self, *arguments: str) -> str:
        """Run docker compose over the stack's files. Return what it printed."""
        return running.compose(*arguments, seconds=_COMMAND_SECONDS)

    def containers(self) -> list[running.Container]:
        return running.containers()

    def is_healthy(self, service: str) -> bool:
        """Return True if all containers of a service run and are well."""
        return running.is_healthy(service)

    def await_health(self, service: str, timeout: float = 180) -> None:
        """Wait until a service is healthy."""
        eventually(lambda: self.is_healthy(service), timeout=timeout)

    def crash(self, service: str) -> None:
        """Kill what a container runs, as the kernel would; its restart policy must bring it back."""
        running.crash(service)

    def pause(self, service: str) -> None:
        """Have a service stand still; what starts processes in that moment, runc gives up ("unable to freeze")."""
        eventually(lambda: self._paused(service), timeout=30)

    def _paused(self, service: str) -> bool:
        try:
            self.compose("pause", service)
        except running.StackError as error:
            if "unable to freeze" not in str(error):
                raise
            return False
        return True

    @property
    def lakehouse(self) -> Location:
        """The tables, as root may see them."""
        return running.lakehouse("root")

    def event_ids(self, table: str = "silver/events") -> Counter[str]:
        """Return how often each event stands in a table; none while there is no table."""
        location = self.lakehouse
        options = dict(location.options)
        if not DeltaTable.is_deltatable(location.child(table), options):
            return Counter()
        rows = DeltaTable(location.child(table), storage_options=options).to_pyarrow_table(columns=["event_id"])
        return Counter(rows["event_id"].to_pylist())

    def reconciliation(self) -> Reconciliation:
        return reconcile(Store(self.lakehouse))


def stack_sender() -> Sender:
    """Sends to the stack's topic, for fixtures that outlive a test."""
    access = running.kafka("simulator")
    return Sender(
        access.bootstrap_servers, running.registry_url(), "events", access.for_clients(), running.registry_writer()
    )
