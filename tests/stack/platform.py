"""The running stack, as a test sees and mistreats it."""

import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from gamelake.lake.store import Location, Store
from gamelake.maintenance.books import Books, balance
from gamelake.settings import LakehouseSettings
from tests.eventually import eventually

ROOT = Path(__file__).parents[2]
SECRETS = ROOT / "compose/secrets"
_COMMAND_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a service."""

    service: str
    state: str
    health: str


class Stack:
    """The services through docker compose, the tables through their published store."""

    def compose(self, *arguments: str) -> str:
        """Run docker compose over the stack's files; gives what it printed."""
        command = [str(ROOT / "compose/stack.sh"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr[-2000:]}"
        return done.stdout

    def containers(self) -> list[Container]:
        """What there is of the stack now."""
        lines = self.compose("ps", "--all", "--format", "json").splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [Container(each["Service"], each["State"], each["Health"]) for each in found]

    def is_healthy(self, service: str) -> bool:
        """Whether all containers of a service run and are well."""
        mine = [each for each in self.containers() if each.service == service]
        return bool(mine) and all(each.state == "running" and each.health in ("healthy", "") for each in mine)

    def await_health(self, service: str, timeout: float = 180) -> None:
        """Wait until a service is well."""
        eventually(lambda: self.is_healthy(service), timeout=timeout)

    def crash(self, service: str) -> None:
        """Kill what a container runs, as the kernel would; its restart policy must bring it back."""
        # Not `docker kill`: the engine takes that for a person's wish and restarts nothing.
        self.compose("exec", "--no-TTY", service, "bash", "-c", "kill -9 $(cat /proc/1/task/1/children)")

    @property
    def lakehouse(self) -> Location:
        """The tables, as root may see them."""
        port = os.environ.get("OBJECT_STORE_PORT", "9000")
        variables = {
            "GAMELAKE_LAKEHOUSE": "s3://lakehouse",
            "GAMELAKE_S3_ENDPOINT": f"http://127.0.0.1:{port}",
            "GAMELAKE_S3_REGION": "us-east-1",
            "AWS_SHARED_CREDENTIALS_FILE": str(SECRETS / "object-store-root"),
        }
        return LakehouseSettings.from_env(variables).location

    def event_ids(self, table: str = "silver/events") -> Counter[str]:
        """How often each event stands in a table; none while there is no table."""
        location = self.lakehouse
        options = dict(location.options)
        if not DeltaTable.is_deltatable(location.child(table), options):
            return Counter()
        rows = DeltaTable(location.child(table), storage_options=options).to_pyarrow_table(columns=["event_id"])
        return Counter(rows["event_id"].to_pylist())

    def books(self) -> Books:
        """The balance of the lakehouse."""
        return balance(Store(self.lakehouse))
