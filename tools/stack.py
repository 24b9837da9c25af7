"""The running local stack: its containers through docker compose; tables, topics and gateway by published ports.

It knows compose and the files under compose/, not what a drill, a test or a benchmark does with the stack.
"""

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gamelake.kafka import KafkaAccess, read_credentials
from gamelake.model import credentials
from gamelake.model.credentials import ServerCredentials
from gamelake.model.errors import GamelakeError, StartupError
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Location
from gamelake.trino import TrinoAccess
from tools.embedded.ports import HOST
from tools.embedded.service import REPOSITORY

COMPOSE = REPOSITORY / "compose"
SECRETS = COMPOSE / "secrets"
AUTHORITY = COMPOSE / "certificates/ca.pem"
OPERATOR = COMPOSE / "certificates/operator.pem"
# The one reader of these files; $0 is their folder.
_READ_SETTINGS = (
    """. "$0/read_env.sh" && read_env "$0" && for name in $read_env_names; do echo "$name=${!name}"; done"""
)
_COMMAND_SECONDS = 600
_PAGE_SECONDS = 30
_SHOWN = 2_000


class StackError(GamelakeError):
    """The stack is not running, or a command on it failed."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a service of the stack."""

    id: str
    service: str
    state: str
    health: str
    project: str

    @property
    def is_up(self) -> bool:
        """True if the container runs, and is healthy if it has a health check."""
        return self.state == "running" and self.health in ("healthy", "")


@dataclass(frozen=True, slots=True)
class PageResponse:
    """The response of a service's page."""

    status: int
    text: str


@cache
def settings() -> Mapping[str, str]:
    """Read the settings of compose/.env; compose/.env.override and the environment take precedence.

    Raises:
        StackError: a line of these files is not a setting.
    """
    command = ("bash", "-c", _READ_SETTINGS, str(COMPOSE))
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise StackError(answer.stderr.strip().removeprefix("gamelake: "))
    lines = [line.partition("=") for line in answer.stdout.splitlines()]
    return {name: value for name, _, value in lines}


def project_name() -> str:
    """Return the name by which docker compose knows the stack."""
    return os.environ.get("COMPOSE_PROJECT_NAME") or settings().get("COMPOSE_PROJECT_NAME", "gamelake")


@cache
def ports() -> Mapping[str, int]:
    """Return the published ports by their names in the settings."""
    return {name: int(value) for name, value in settings().items() if name.endswith("_PORT")}


def is_encrypted() -> bool:
    """Return True if the services talk by TLS."""
    return settings()["TLS"] != "0"


def scheme() -> str:
    """Return the scheme of the services' URLs."""
    return "https" if is_encrypted() else "http"


def lakehouse(user: str) -> Location:
    """Return the lakehouse, with the key of one of the object store's users."""
    variables = {
        "GAMELAKE_LAKEHOUSE": "s3://lakehouse",
        "GAMELAKE_S3_ENDPOINT": url("OBJECT_STORE_PORT"),
        "GAMELAKE_S3_REGION": "us-east-1",
        "AWS_SHARED_CREDENTIALS_FILE": str(SECRETS / f"object-store-{user}"),
    }
    return LakehouseSettings.from_env(variables).location


def kafka(user: str) -> KafkaAccess:
    """Return access to Kafka as one of its users."""
    authorities = str(AUTHORITY) if is_encrypted() else ""
    return KafkaAccess(f"{HOST}:{ports()['KAFKA_PORT']}", read_credentials(SECRETS / f"kafka-{user}"), authorities)


def gateway_url() -> str:
    """Return the published URL of the gateway."""
    return url("INGEST_PORT")


def registry_url() -> str:
    """Return the published URL of the registry's Confluent API."""
    return f"{url('REGISTRY_PORT')}/apis/ccompat/v7"


def registry_writer() -> ServerCredentials:
    """Read the credentials for changes of the registry."""
    return credentials.read_credentials(SECRETS / "registry-writer", "compose/secrets/registry-writer")


def trino(user: str) -> TrinoAccess:
    """Return access to Trino as one of its users."""
    return TrinoAccess.parse(url("TRINO_PORT"), user, _trino_password(user))


def trino_credentials(user: str) -> Path:
    """Return the file with the name and the password of a user of Trino; it may be missing."""
    return SECRETS / f"trino-{user}"


def _trino_password(user: str) -> str:
    file = trino_credentials(user)
    if user == "prometheus":
        # Prometheus reads a password from a file of its own.
        return file.read_text(encoding="utf-8")
    return credentials.read_credentials(file, f"compose/secrets/{file.name}").password


def url(port: str) -> str:
    """Return the URL of a published port; this process and its children trust the stack's certificates from now on."""
    if is_encrypted():
        # For OpenSSL, Rustls and Python's requests.
        os.environ["SSL_CERT_FILE"] = os.environ["REQUESTS_CA_BUNDLE"] = str(AUTHORITY)
    return f"{scheme()}://{HOST}:{ports()[port]}"


def page(port: str, path: str = "/", method: str = "GET", seconds: int = _PAGE_SECONDS) -> PageResponse:
    """Fetch a page of Prometheus, Alertmanager, Spark, Data Docs or the portal, by the operator's certificate.

    Args:
        port: the name of the published port in the settings.
        path: with its query.
        method: GET, or POST without a body, as of a form without fields; redirects are followed.
        seconds: how long to wait.

    Raises:
        OSError: the service does not respond.
    """
    context = ssl.create_default_context(cafile=AUTHORITY)
    context.load_cert_chain(OPERATOR)
    request = urllib.request.Request(f"https://{HOST}:{ports()[port]}{path}", method=method)  # https
    try:
        with urllib.request.urlopen(request, timeout=seconds, context=context) as response:  # noqa: S310 # https
            return PageResponse(response.status, response.read().decode())
    except urllib.error.HTTPError as refused:
        with refused:
            return PageResponse(refused.code, refused.read().decode())


def compose(*arguments: str, seconds: int = _COMMAND_SECONDS) -> str:
    """Run docker compose with the stack's files; returns its output.

    Raises:
        StackError: the command failed.
    """
    return run((str(COMPOSE / "stack.sh"), *arguments), seconds)


def run(command: Sequence[str], seconds: int = _COMMAND_SECONDS) -> str:
    """Run a command in the repository's folder; returns its output.

    Raises:
        StackError: the command failed, or took longer than `seconds`.
    """
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StackError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        raise StackError(f"{' '.join(command)} ended with {done.returncode}: {(done.stdout + done.stderr)[-_SHOWN:]}")
    return done.stdout


def containers() -> list[Container]:
    """Return all containers of the stack.

    Raises:
        StackError: docker is not available.
    """
    lines = compose("ps", "--all", "--format", "json").splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [Container(each["ID"], each["Service"], each["State"], each["Health"], each["Project"]) for each in found]


def running_containers() -> list[Container]:
    """Return all containers of the stack, which runs.

    Raises:
        StartupError: it does not run, or docker is not available.
    """
    try:
        found = containers()
    except StackError as error:
        raise StartupError(str(error)) from error
    if not any(each.state == "running" for each in found):
        raise StartupError("the stack does not run: make up starts it")
    return found


def is_healthy(service: str) -> bool:
    """Return True if all containers of a service run and are healthy."""
    mine = [each for each in containers() if each.service == service]
    return bool(mine) and all(each.is_up for each in mine)


def crash(service: str) -> None:
    """Kill the process of a container; its restart policy must restart it."""
    # Not `docker kill`: docker does not restart a container that was killed by that command.
    compose("exec", "--no-TTY", service, "bash", "-c", "kill -9 $(cat /proc/1/task/1/children)")


def run_job(service: str, job: str, *arguments: str, options: Sequence[str] = ()) -> str:
    """Run a job to its end with the settings and secrets of a service; `options` are for compose's `run`.

    Raises:
        StackError: the job failed.
    """
    command = ("run", "--rm", "--no-deps", "--no-TTY", *options, service, "python", "-m", f"jobs.{job}")
    return compose(*command, *arguments)
