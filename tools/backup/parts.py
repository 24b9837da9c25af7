"""The registry's schemas, ids, rules and settings as one archive, by Apicurio's own API.

Source: Apicurio Registry v3 REST API, headings "Export registry data" and "Import registry data".
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2
import msgspec

from gamelake.kafka import KafkaAccess
from gamelake.model.credentials import ServerCredentials
from gamelake.model.errors import BackupError
from services.provision.declarations import TopicSpec
from services.provision.kafka import KafkaAdmin
from services.provision.provisioning import ServiceRefusedError, ServiceUnavailableError
from tools.embedded.service import REPOSITORY
from tools.stack import COMPOSE

_CONFLUENT, _ADMIN = "/apis/ccompat/v7", "/apis/registry/v3/admin"
_ANSWER_SECONDS = 60.0
_FIRST_ERROR = 400
_RETENTION = "retention.ms"
_HOUR = 3_600_000
_SECONDS = 3_600
_SHOWN = 500


class RegistryPart:
    """A registry, by the address of its Confluent-compatible API."""

    name = "registry"
    file = "registry.zip"

    def __init__(self, url: str, writer: ServerCredentials | None = None) -> None:
        base, confluent, _ = url.partition(_CONFLUENT)
        if not confluent:
            raise BackupError(
                f"the registry at {url} is not Apicurio: back it up by its own tools, and leave it out here"
            )
        auth = (writer.username, writer.password) if writer else None
        self._http = httpx2.Client(base_url=base, timeout=_ANSWER_SECONDS, auth=auth)

    def save(self, folder: Path) -> None:
        """Write the registry's export.

        Raises:
            BackupError: the registry returns no export.
        """
        (folder / self.file).write_bytes(self._ask("GET", f"{_ADMIN}/export").content)

    def is_empty(self) -> bool:
        """Return True if the registry has no subject.

        Raises:
            BackupError: the registry is not available.
        """
        return not self._ask("GET", f"{_CONFLUENT}/subjects").json()

    def restore(self, folder: Path) -> str:
        """Import the export; all schema ids stay the same.

        Raises:
            BackupError: the registry rejects it.
        """
        content = (folder / self.file).read_bytes()
        self._ask("POST", f"{_ADMIN}/import", content)
        subjects = self._ask("GET", f"{_CONFLUENT}/subjects").json()
        return f"{len(subjects)} subjects"

    def _ask(self, method: str, path: str, content: bytes | None = None) -> httpx2.Response:
        headers = {} if content is None else {"Content-Type": "application/zip"}
        try:
            answer = self._http.request(method, path, content=content, headers=headers)
        except httpx2.HTTPError as error:
            raise BackupError(f"the registry can't be reached: {error}") from error
        if answer.status_code >= _FIRST_ERROR:
            raise BackupError(f"the registry refuses {method} {path} ({answer.status_code}): {answer.text[:200]}")
        return answer


class SavedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic, with its settings that differ from the broker's."""

    name: str
    partitions: int
    settings: dict[str, str]


class TopicsPart:
    """The topics of a Kafka."""

    name = "topics"
    file = "topics.json"

    def __init__(self, access: KafkaAccess) -> None:
        self._kafka = KafkaAdmin(access)

    def save(self, folder: Path) -> None:
        """Write the topics with their settings.

        Raises:
            BackupError: Kafka is not available, or refuses.
        """
        try:
            topics = [
                SavedTopic(name=name, partitions=count, settings=self._kafka.settings(name))
                for name, count in sorted(self._kafka.partitions().items())
            ]
        except (ServiceUnavailableError, ServiceRefusedError) as error:
            raise BackupError(str(error)) from error
        (folder / self.file).write_bytes(msgspec.json.format(msgspec.json.encode(topics)))

    def is_empty(self) -> bool:
        """Return True always: existing topics are not changed."""
        return True

    def restore(self, folder: Path) -> str:
        """Create the missing topics.

        Raises:
            BackupError: Kafka is not available, or refuses.
        """
        saved = msgspec.json.decode((folder / self.file).read_bytes(), type=list[SavedTopic])
        try:
            there = self._kafka.partitions()
            missing = [topic for topic in saved if topic.name not in there]
            for topic in missing:
                self._kafka.create_topic(_as_declared(topic))
        except (ServiceUnavailableError, ServiceRefusedError) as error:
            raise BackupError(str(error)) from error
        return f"{len(missing)} topics created, {len(saved) - len(missing)} existed"


def _as_declared(topic: SavedTopic) -> TopicSpec:
    config: dict[str, str | int | bool] = {**topic.settings}
    hours = int(config.pop(_RETENTION, 168 * _HOUR)) // _HOUR
    return TopicSpec(name=topic.name, partitions=topic.partitions, retention_hours=max(hours, 1), config=config)


class VaultPart:
    """A vault that is reachable from this machine."""

    name = "vault"
    file = "vault.zst"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def save(self, folder: Path) -> None:
        """Write the vault's backup.

        Raises:
            BackupError: the job failed.
        """
        _run((sys.executable, "-m", "jobs.backup_vault", str(folder / self.file)), Piped(), self._environment)

    def is_empty(self) -> bool:
        """Return True always: existing players are not changed, and erased ones are not restored."""
        return True

    def restore(self, folder: Path) -> str:
        """Restore the missing players.

        Raises:
            BackupError: the job failed.
        """
        command = (sys.executable, "-m", "jobs.restore_vault", str(folder / self.file))
        _run(command, Piped(), self._environment)
        return "missing players that were not erased"


class StackVaultPart(VaultPart):
    """The stack's vault, which is reachable from its containers only."""

    def __init__(self) -> None:
        super().__init__({})

    def save(self, folder: Path) -> None:
        """Write the vault's backup, through the container's standard output."""
        script = "python -m jobs.backup_vault /tmp/vault >&2 && cat /tmp/vault"
        with (folder / self.file).open("wb") as out:
            _run(_in_the_stack(script), Piped(to=out.fileno()), {})

    def restore(self, folder: Path) -> str:
        """Restore the missing players, through the container's standard input."""
        script = "cat >/tmp/vault && python -m jobs.restore_vault /tmp/vault"
        with (folder / self.file).open("rb") as content:
            _run(_in_the_stack(script), Piped(given=content.fileno()), {})
        return "missing players that were not erased"


@dataclass(frozen=True, slots=True)
class Piped:
    """File descriptors for a program's standard input and output."""

    given: int = subprocess.DEVNULL
    to: int = subprocess.DEVNULL


def _in_the_stack(script: str) -> tuple[str, ...]:
    return (str(COMPOSE / "stack.sh"), "run", "--rm", "--no-deps", "--no-TTY", "privacy", "bash", "-c", script)


def _run(command: Sequence[str], piped: Piped, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, cwd=REPOSITORY, env=dict(environment) or None, stdin=piped.given, stdout=piped.to,
        stderr=subprocess.PIPE, timeout=_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        message = done.stderr.decode(errors="replace")[-_SHOWN:]
        raise BackupError(f"{' '.join(command)} ended with {done.returncode}: {message}")
