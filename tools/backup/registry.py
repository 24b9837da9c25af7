"""The registry's schemas, ids, rules and settings as one archive, by Apicurio's own API.

Source: Apicurio Registry v3 REST API, headings "Export registry data" and "Import registry data".
"""

from pathlib import Path

import httpx2

from gamelake.errors import BackupError

_CONFLUENT, _ADMIN = "/apis/ccompat/v7", "/apis/registry/v3/admin"
_ANSWER_SECONDS = 60.0
_FIRST_ERROR = 400


class RegistryPart:
    """A registry, by the address of its Confluent-compatible API."""

    name = "registry"
    file = "registry.zip"

    def __init__(self, url: str) -> None:
        base, confluent, _ = url.partition(_CONFLUENT)
        if not confluent:
            raise BackupError(f"the registry at {url} is no Apicurio: save it by its own means, and leave it out here")
        self._http = httpx2.Client(base_url=base, timeout=_ANSWER_SECONDS)

    def save(self, folder: Path) -> None:
        """Write the archive.

        Raises:
            BackupError: the registry gives none.
        """
        (folder / self.file).write_bytes(self._ask("GET", f"{_ADMIN}/export").content)

    def is_empty(self) -> bool:
        """Whether it has no subject.

        Raises:
            BackupError: the registry gives no answer.
        """
        return not self._ask("GET", f"{_CONFLUENT}/subjects").json()

    def put_back(self, folder: Path) -> str:
        """Read the archive in: every id means what it meant.

        Raises:
            BackupError: the registry takes it not.
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
