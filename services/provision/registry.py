"""The compatibility levels of a schema registry, through the Confluent API."""

from datetime import timedelta
from urllib.parse import quote

import httpx2

from services.provision.declared_subjects import Compatibility
from services.provision.errors import ServiceRefusedError, ServiceSilentError

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
