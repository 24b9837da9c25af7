"""Brings the registry's compatibility levels in line with `compose/registry/subjects.yaml`.

`python -m services.provision.subjects`. It registers no schema: that is the producers' part.
"""

import logging
from datetime import timedelta
from urllib.parse import quote

import httpx2

from gamelake.program import OK, run
from services.provision.declarations import Compatibility, DeclaredSubjects, load_subjects
from services.provision.provisioning import Changes, ServiceRefusedError, ServiceSilentError, wait_for
from services.provision.settings import SubjectsSettings

ANSWER = timedelta(seconds=10)
_NOT_FOUND = 404
_FIRST_ERROR, _FIRST_FAULT_OF_THE_SERVER = 400, 500
# While it starts, a registry answers that it is not ready, or (Quarkus) that there is no such path.
_JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class Registry:
    """A registry whose compatibility levels can be seen and changed.

    Source: Confluent Schema Registry API, heading "Config".
    """

    def __init__(self, url: str) -> None:
        self._http = httpx2.Client(base_url=url, timeout=ANSWER.total_seconds(), headers=_JSON)

    def level_of_others(self) -> Compatibility:
        """What holds for a subject without a level of its own.

        Raises:
            ServiceSilentError: the registry gave no answer, or is not ready yet.
        """
        level = self._level("/config")
        if level is None:
            raise ServiceSilentError("the registry's address has no /config: it is starting, or the address is wrong")
        return level

    def level(self, subject: str) -> Compatibility | None:
        """A subject's own level, None if it has none.

        Apicurio answers NONE as well for a subject that has schemas and no level of its own.
        """
        return self._level(f"/config/{quote(subject, safe='')}")

    def set_level_of_others(self, level: Compatibility) -> None:
        """Choose what holds for a subject without a level of its own."""
        self._request("PUT", "/config", level)

    def set_level(self, subject: str, level: Compatibility) -> None:
        """Choose a subject's own level; the subject need not be there yet."""
        self._request("PUT", f"/config/{quote(subject, safe='')}", level)

    def _level(self, path: str) -> Compatibility | None:
        answer = self._request("GET", path)
        return None if answer is None else Compatibility(answer.json()["compatibilityLevel"])

    def _request(self, method: str, path: str, level: Compatibility | None = None) -> httpx2.Response | None:
        """The answer, None if there is no such thing."""
        body = None if level is None else {"compatibility": level.value}
        try:
            answer = self._http.request(method, path, json=body)
        except httpx2.HTTPError as error:
            raise ServiceSilentError(f"the registry can't be reached: {error}") from error
        if answer.status_code >= _FIRST_FAULT_OF_THE_SERVER:
            raise ServiceSilentError(f"the registry answered {answer.status_code}: {answer.text}")
        if answer.status_code == _NOT_FOUND and method == "GET":
            return None
        if answer.status_code >= _FIRST_ERROR:
            raise ServiceRefusedError(f"the registry refuses {method} {path} ({answer.status_code}): {answer.text}")
        return answer


def main() -> int:
    """Run once; 0 when the registry is as declared."""
    settings = SubjectsSettings.from_env()
    declared = load_subjects(settings.file)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each request says nothing that is not said below
    registry = Registry(settings.url)
    found = wait_for("registry", registry.level_of_others, settings.patience)
    changes = Changes("subjects")
    bring_levels_in_line(registry, declared, found, changes)
    changes.close()
    return OK


def bring_levels_in_line(
    registry: Registry, declared: DeclaredSubjects, found: Compatibility, changes: Changes
) -> None:
    """Set each level that differs."""
    if found is not declared.others:
        registry.set_level_of_others(declared.others)
        changes.note(f"others are {declared.others} instead of {found}")
    for subject in declared.subjects:
        level = registry.level(subject.name)
        if level is not subject.compatibility:
            registry.set_level(subject.name, subject.compatibility)
            changes.note(f"{subject.name} is {subject.compatibility} instead of {level or 'without a level'}")
        elif level is Compatibility.NONE:
            # It may mean that the subject has no level, and so that of the others: only setting it makes sure.
            registry.set_level(subject.name, subject.compatibility)


if __name__ == "__main__":
    run(main)
