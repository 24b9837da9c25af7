"""Brings the registry's compatibility levels in line with `compose/registry/subjects.yaml`.

`python -m services.provision.subjects`. It registers no schema; producers do that.
"""

import logging
from datetime import timedelta
from urllib.parse import quote

import httpx2

from gamelake.model.credentials import ServerCredentials
from gamelake.program import OK, run
from services.provision.declarations import Compatibility, DeclaredSubjects, load_subjects
from services.provision.provisioning import ChangeLog, ServiceRefusedError, ServiceUnavailableError, wait_for
from services.provision.settings import SubjectsSettings

ANSWER = timedelta(seconds=10)
_NOT_FOUND = 404
_FIRST_ERROR, _FIRST_FAULT_OF_THE_SERVER = 400, 500
# While it starts, a registry responds that it is not ready, or (Quarkus) with 404.
_JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class RegistryAdmin:
    """Reads and changes the compatibility levels of a registry.

    Source: Confluent Schema Registry API, heading "Config".
    """

    def __init__(self, url: str, writer: ServerCredentials | None = None) -> None:
        auth = (writer.username, writer.password) if writer else None
        self._http = httpx2.Client(base_url=url, timeout=ANSWER.total_seconds(), headers=_JSON, auth=auth)

    def level_of_others(self) -> Compatibility:
        """Return the level of subjects without their own.

        Raises:
            ServiceUnavailableError: the registry is not available, or not ready yet.
        """
        level = self._level("/config")
        if level is None:
            raise ServiceUnavailableError(
                "the registry's address has no /config: it is starting, or the address is wrong"
            )
        return level

    def level(self, subject: str) -> Compatibility | None:
        """Return a subject's own level, None if it has none.

        Apicurio also returns NONE for a subject that has schemas and no level of its own.
        """
        return self._level(f"/config/{quote(subject, safe='')}")

    def set_level_of_others(self, level: Compatibility) -> None:
        """Set the level of subjects without their own."""
        self._request("PUT", "/config", level)

    def set_level(self, subject: str, level: Compatibility) -> None:
        """Set a subject's own level; the subject need not exist yet."""
        self._request("PUT", f"/config/{quote(subject, safe='')}", level)

    def _level(self, path: str) -> Compatibility | None:
        answer = self._request("GET", path)
        return None if answer is None else Compatibility(answer.json()["compatibilityLevel"])

    def _request(self, method: str, path: str, level: Compatibility | None = None) -> httpx2.Response | None:
        """The response; None if a GET returns 404."""
        body = None if level is None else {"compatibility": level.value}
        try:
            answer = self._http.request(method, path, json=body)
        except httpx2.HTTPError as error:
            raise ServiceUnavailableError(f"the registry can't be reached: {error}") from error
        if answer.status_code >= _FIRST_FAULT_OF_THE_SERVER:
            raise ServiceUnavailableError(f"the registry answered {answer.status_code}: {answer.text}")
        if answer.status_code == _NOT_FOUND and method == "GET":
            return None
        if answer.status_code >= _FIRST_ERROR:
            raise ServiceRefusedError(f"the registry refuses {method} {path} ({answer.status_code}): {answer.text}")
        return answer


def main() -> int:
    """Run once; 0 if the registry is as declared."""
    settings = SubjectsSettings.from_env()
    declared = load_subjects(settings.file)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # its line for each request adds nothing to the lines below
    registry = RegistryAdmin(settings.url, settings.writer)
    found = wait_for("registry", registry.level_of_others, settings.patience)
    changes = ChangeLog("subjects")
    synchronize_levels(registry, declared, found, changes)
    changes.close()
    return OK


def synchronize_levels(
    registry: RegistryAdmin, declared: DeclaredSubjects, found: Compatibility, changes: ChangeLog
) -> None:
    """Set the levels that differ."""
    if found is not declared.others:
        registry.set_level_of_others(declared.others)
        changes.note(f"others are {declared.others} instead of {found}")
    for subject in declared.subjects:
        level = registry.level(subject.name)
        if level is not subject.compatibility:
            registry.set_level(subject.name, subject.compatibility)
            changes.note(f"{subject.name} is {subject.compatibility} instead of {level or 'without a level'}")
        elif level is Compatibility.NONE:
            # NONE can also mean that the subject has no level, and so the one of the others; setting it makes sure.
            registry.set_level(subject.name, subject.compatibility)


if __name__ == "__main__":
    run(main)
