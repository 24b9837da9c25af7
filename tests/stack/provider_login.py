"""Logins to Trino at the provider, as a browser and a client do them."""

import base64
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from requests.adapters import HTTPAdapter

from gamelake.model.credentials import read_credentials
from tests.stack.platform import SECRETS
from tools.stack import ports, url

_SECONDS = 60
_FORM = re.compile(r'<form[^>]* action="([^"]+)"')
_CHALLENGE = re.compile(r'(x_redirect_server|x_token_server)="([^"]+)"')


class LoginRefusedError(Exception):
    """The provider, or Trino at the end of the login, refuses it."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """Trino's response to a request without credentials: where a person logs in, where the client gets the token."""

    redirect: str
    token: str


class _LocalAdapter(HTTPAdapter):
    """Connects to this machine under a name that browsers resolve to it, and the system's resolver may not."""

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: bool | str, cert: str | tuple[str, str] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return where to connect to, and by which name to check the certificate."""
        host, options = super().build_connection_pool_key_attributes(request, verify, cert)
        options |= {"server_hostname": host["host"], "assert_hostname": host["host"]}
        return {**host, "host": "127.0.0.1"}, options


def issuer() -> str:
    """The URL of the provider's realm."""
    return f"https://identity.localhost:{ports()['KEYCLOAK_PORT']}/realms/gamelake"


def password_of(user: str) -> str:
    """The password of a person at the provider: the one in Trino, if Trino has such a user."""
    file = SECRETS / (f"trino-{user}" if (SECRETS / f"trino-{user}").exists() else f"keycloak-{user}")
    return read_credentials(file, file.name).password


def browser() -> requests.Session:
    session = requests.Session()
    url("TRINO_PORT")  # trusts the stack's authority from now on
    session.mount(f"https://identity.localhost:{ports()['KEYCLOAK_PORT']}/", _LocalAdapter())
    return session


def challenge() -> Challenge:
    """Ask Trino something without credentials."""
    response = requests.post(f"{url('TRINO_PORT')}/v1/statement", "SELECT 1", timeout=_SECONDS)
    found = dict(_CHALLENGE.findall(response.headers["WWW-Authenticate"]))
    assert response.status_code == 401
    return Challenge(found["x_redirect_server"], found["x_token_server"])


def log_in(redirect: str, user: str, password: str) -> None:
    """Do what a person does in a browser to whom a client has shown Trino's address for logins.

    Raises:
        LoginRefusedError: the login does not end at Trino's page that says so.
    """
    with browser() as session:
        page = session.get(redirect, timeout=_SECONDS)
        form = _FORM.search(page.text)
        assert form is not None, page.text
        filled = {"username": user, "password": password}
        end = session.post(html.unescape(form[1]), data=filled, timeout=_SECONDS)
        if end.status_code != 200 or not end.url.startswith(url("TRINO_PORT")):
            raise LoginRefusedError(f"{end.status_code} from {urlsplit(end.url).netloc}")


def token_of(user: str) -> str:
    """The access token that Trino gives to a client after a person has logged in."""
    asked = challenge()
    log_in(asked.redirect, user, password_of(user))
    where = asked.token
    while where:
        answer = requests.get(where, timeout=_SECONDS).json()
        if "token" in answer:
            return str(answer["token"])
        where = answer.get("nextUri", "")
    raise LoginRefusedError(str(answer.get("error")))


def token_for_client(client: str, user: str) -> str:
    """An access token that the provider issues for another client."""
    form = {"grant_type": "password", "client_id": client, "username": user, "password": password_of(user)}
    with browser() as session:
        answer = session.post(f"{issuer()}/protocol/openid-connect/token", data=form, timeout=_SECONDS)
    answer.raise_for_status()
    return str(answer.json()["access_token"])


def status(token: str, user: str = "") -> int:
    """The status with which Trino responds to a statement with this token."""
    headers = {"Authorization": f"Bearer {token}", **({"X-Trino-User": user} if user else {})}
    return requests.post(f"{url('TRINO_PORT')}/v1/statement", "SELECT 1", headers=headers, timeout=_SECONDS).status_code


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a token."""
    header, claims, _ = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    return json.loads(header), json.loads(claims)


def signed_by_another(header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    """A token whose signature is valid, by a key that the provider does not have."""
    text = f"{_encoded(header)}.{_encoded(claims)}"
    signature = generate_private_key(65537, 2048).sign(text.encode(), PKCS1v15(), SHA256())
    return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def unsigned(claims: Mapping[str, Any]) -> str:
    """A token that states that it has no signature."""
    return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{_encoded(claims)}."


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
