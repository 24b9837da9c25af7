"""The ingest gateway as a child process, with its own keys and vault in its directory."""

import base64
import os
import secrets
import ssl
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tools.embedded.ports import HOST, accepts_connections, free_port
from tools.embedded.process import Program
from tools.embedded.service import REPOSITORY, EmbeddedService

_VAULT_KEY_BYTES = 32
_SECRET_BYTES = 32
_OWNER_ONLY = 0o600
_ONE_LINE = 10_000
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayBackend:
    """The services that the gateway writes to."""

    bootstrap_servers: str
    registry_url: str
    topic: str


class EmbeddedGateway(EmbeddedService):
    """The gateway on this machine; its vault and the vault's keys outlive the process.

    Args:
        settings: variables of the service beyond those that this class sets, or instead of them.
        certificates: the directory of certificates with which it serves HTTPS, as `services.provision.certificates`
            makes it; without it the gateway serves HTTP.
        ports: the one for games, and the one for metrics, by HTTP; free ones if None.
    """

    name = "gateway"

    def __init__(
        self,
        directory: Path,
        backing: GatewayBackend,
        settings: Mapping[str, str] = _NONE,
        certificates: Path | None = None,
        ports: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(directory)
        self._backing = backing
        self._settings = settings
        self._certificates = certificates
        self.port, self.metrics_port = ports or (free_port(), free_port())

    @property
    def url(self) -> str:
        """The URL that games send to."""
        return f"{'https' if self._certificates else 'http'}://{HOST}:{self.port}"

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The certificates that its clients trust; None for HTTP."""
        if self._certificates is None:
            return None
        return ssl.create_default_context(cafile=str(self._certificates / "ca.pem"))

    @property
    def keys_file(self) -> Path:
        """The games' keys; the file must exist before the service starts."""
        return self.directory / "keys.yaml"

    @property
    def vault_file(self) -> Path:
        """The vault: personal data, encrypted."""
        return self.directory / "vault.db"

    @property
    def vault_keys_file(self) -> Path:
        """The keys of the vault; it cannot be decrypted without them."""
        return self.directory / "vault-keys.yaml"

    def make_keys(self, games: Iterable[str], events_per_second: int) -> None:
        """Create a new key for each game, whose id is the game's name; old keys become invalid."""
        self._write_keys([_new_key(game, events_per_second) for game in games])

    def keep_keys(self, games: Iterable[str], events_per_second: int) -> None:
        """Create a key for each game that has none, as `make_keys` does; existing keys stay valid."""
        kept = yaml.safe_load(self.keys_file.read_text())["keys"] if self.keys_file.exists() else []
        missing = [game for game in games if game not in {key["game"] for key in kept}]
        if missing:
            self._write_keys([*kept, *(_new_key(game, events_per_second) for game in missing)])

    def program(self) -> Program:
        """Create the vault's keys if there are none, and describe the process."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self.vault_keys_file.exists():
            index, first = (base64.b64encode(os.urandom(_VAULT_KEY_BYTES)).decode() for _ in range(2))
            _write_secret(self.vault_keys_file, f"index: {index}\ncurrent: first\nkeys: {{first: {first}}}\n")
        return Program(
            name=self.name,
            command=(sys.executable, "-m", "services.gateway"),
            log_file=self.directory / "ingest.log",
            environment={**self._environment(), **self._settings},
        )

    def is_healthy(self) -> bool:
        """Return True if the service responds; it does without Kafka, too."""
        return accepts_connections(self.port) and self.page("/healthz") is not None

    def page(self, path: str) -> bytes | None:
        """Return the body of a GET request; None if it fails."""
        tls = self.tls
        connection = (
            HTTPSConnection(HOST, self.port, timeout=5, context=tls)
            if tls
            else HTTPConnection(HOST, self.port, timeout=5)
        )
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException):
            return None
        finally:
            connection.close()
        return body if answer.status == 200 else None  # noqa: PLR2004 - OK

    def _write_keys(self, keys: list[dict[str, Any]]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        # A key is a line, as in the stack's file, where shell scripts find it.
        lines = (yaml.safe_dump(key, default_flow_style=True, sort_keys=False, width=_ONE_LINE) for key in keys)
        _write_secret(self.keys_file, "".join(("keys:\n", *(f"  - {line}" for line in lines))))

    def _environment(self) -> Mapping[str, str]:
        already = os.environ.get("PYTHONPATH")
        return {
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *([already] if already else [])]),
            "GAMELAKE_BOOTSTRAP_SERVERS": self._backing.bootstrap_servers,
            "GAMELAKE_REGISTRY_URL": self._backing.registry_url,
            "GAMELAKE_TOPIC": self._backing.topic,
            "GAMELAKE_VAULT": str(self.vault_file),
            "GAMELAKE_VAULT_KEYS_FILE": str(self.vault_keys_file),
            "INGEST_HOST": HOST,
            "INGEST_PORT": str(self.port),
            "GAMELAKE_METRICS_PORT": str(self.metrics_port),
            "INGEST_KEYS_FILE": str(self.keys_file),
            "INGEST_CERTIFICATE_FILE": str(self._certificates / "ingest.pem") if self._certificates else "",
        }


def _new_key(game: str, events_per_second: int) -> dict[str, Any]:
    return {"id": game, "game": game, "secrets": [secrets.token_hex(_SECRET_BYTES)], "rate": events_per_second}


def _write_secret(file: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that a full disk or a kill costs no key."""
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(_OWNER_ONLY)
    unfinished.write_text(text)
    unfinished.replace(file)
