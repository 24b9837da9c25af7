"""The chart in a cluster: its pods, its gateway and its tables, over kubectl's port forwarding."""

import json
import os
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.ledger.reconciliation import Reconciliation, reconcile
from gamelake.objects.store import Location, Store, shared_credentials
from services.sdk import HttpTransport, Reply, UnreachableError
from tests.stack.game import Game, an_event, credentials_of

ROOT = Path(__file__).parents[2]
NAMESPACE = os.environ.get("GAMELAKE_TEST_NAMESPACE", "games")
RELEASE = "gamelake"
_SECRETS = ROOT / "compose/secrets"
_FORWARDED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")


def kubectl(*arguments: str) -> str:
    """What kubectl prints.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    command = ("kubectl", "--namespace", NAMESPACE, *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Forward:
    """A port of this machine that leads to one pod of a service, and to another pod after that one is gone."""

    def __init__(self, service: str, port: int) -> None:
        self._target = (f"service/{service}", f":{port}")
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    def url(self) -> str:
        """The address, of a new forwarding if the last one has ended.

        Raises:
            UnreachableError: no pod of the service is ready.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        return self._url

    def end(self) -> None:
        """End the forwarding; the next use starts another one."""
        if self._process is not None:
            with self._process as process:  # which waits, and closes its output
                process.kill()
            self._process = None

    def _start(self) -> None:
        self.end()
        command = ("kubectl", "--namespace", NAMESPACE, "port-forward", *self._target)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        # Empty if it has ended, as it does while no pod runs.
        found = _FORWARDED.search(self._process.stdout.readline())
        if found is None:
            self.end()
            raise UnreachableError
        self._url = f"http://127.0.0.1:{found[1]}"


@dataclass(slots=True)
class _ThroughForward:
    """A transport to the gateway that changes the pod when one is gone."""

    forward: Forward
    patience: timedelta = timedelta(seconds=30)

    def post(self, body: bytes, headers: Any) -> Reply:  # noqa: ANN401 # as the SDK's
        transport = HttpTransport(self.forward.url(), self.patience)
        try:
            return transport.post(body, headers)
        except UnreachableError:
            self.forward.end()
            raise
        finally:
            transport.close()

    def close(self) -> None:
        self.forward.end()


@dataclass(slots=True)
class Load:
    """A game that sends until it is stopped, each event until the gateway has acknowledged it."""

    game: Game
    acknowledged_batches: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _failures: list[BaseException] = field(default_factory=list)

    @classmethod
    @contextmanager
    def running(cls, cluster: "Cluster", game: str) -> Iterator["Load"]:
        """Send for as long as the block lasts."""
        load = cls(Game(credentials_of(game), _transport=_ThroughForward(cluster.gateway)))  # type: ignore[arg-type] # it posts likewise
        thread = threading.Thread(target=load._run, daemon=True)
        thread.start()
        try:
            yield load
        finally:
            load._stop.set()
            thread.join(180)
        assert not thread.is_alive()
        assert load._failures == []

    def has_sent(self, batches: int) -> Callable[[], bool]:
        """Return True if so many more batches are acknowledged since this was called."""
        target = self.acknowledged_batches + batches
        return lambda: self.acknowledged_batches >= target or bool(self._failures)

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.2):
                self.game.post_until_taken([an_event(gamer_id=f"p-{number}") for number in range(100)])
                self.acknowledged_batches += 1
        except BaseException as failure:  # the test's own thread raises it
            self._failures.append(failure)


class Cluster:
    """The release that the tests have installed."""

    def __init__(self) -> None:
        self.gateway = Forward(f"{RELEASE}-gateway", 80)
        self._store = Forward("object-store", 9000)

    def close(self) -> None:
        self.gateway.end()
        self._store.end()

    def pods(self, component: str) -> dict[str, bool]:
        """The pods of a component that are not ending, and whether each is ready."""
        selector = f"app.kubernetes.io/component={component}"
        listed = json.loads(kubectl("get", "pods", "--selector", selector, "--output", "json"))["items"]
        unknown = [{"ready": False}]
        return {
            pod["metadata"]["name"]: all(each["ready"] for each in pod["status"].get("containerStatuses", unknown))
            for pod in listed
            if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] in ("Pending", "Running")
        }

    def is_ready(self, component: str, *, but: frozenset[str] = frozenset()) -> bool:
        """Return True if a component has pods other than these, and all are ready."""
        pods = {name: ready for name, ready in self.pods(component).items() if name not in but}
        return bool(pods) and all(pods.values())

    def kill(self, pod: str) -> None:
        """End a pod at once, as the loss of its node does."""
        kubectl("delete", "pod", pod, "--grace-period", "0", "--force")

    def run_task(self, name: str) -> None:
        """Run a maintenance task now, as its CronJob would.

        Raises:
            subprocess.CalledProcessError: it failed, or was not done in ten minutes.
        """
        job = f"{name}-now"
        kubectl("create", "job", job, "--from", f"cronjob/{RELEASE}-task-{name}")
        kubectl("wait", "--for", "condition=Complete", f"job/{job}", "--timeout", "600s")

    @property
    def lakehouse(self) -> Location:
        """The tables, with the key that may do everything."""
        keys = shared_credentials(_SECRETS / "object-store-root", "default")
        options = {**keys, "AWS_ENDPOINT_URL": self._store.url(), "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
        return Location(uri="s3://lakehouse", options=options)

    def event_ids(self) -> Counter[str]:
        """Return how often each event stands in silver; none while there is no table."""
        location = self.lakehouse
        try:
            table = DeltaTable(location.child("silver/events"), storage_options=dict(location.options))
        except TableNotFoundError:
            return Counter()
        return Counter(table.to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist())

    def reconciliation(self) -> Reconciliation:
        return reconcile(Store(self.lakehouse))

    def upgrade(self, values: Mapping[str, str]) -> None:
        """Upgrade the release with changed values, by their paths, and wait until all pods are ready.

        Raises:
            subprocess.CalledProcessError: they were not in 20 minutes.
        """
        release = (RELEASE, os.environ["GAMELAKE_TEST_CHART"], "--namespace", NAMESPACE)
        command = (os.environ["HELM"], "upgrade", *release, "--reuse-values", "--wait", "--timeout", "20m")
        changes = ",".join(f"{name}={value}" for name, value in values.items())
        subprocess.run((*command, "--set", changes), capture_output=True, text=True, check=True)
