"""Logins to Trino at an OpenID Connect provider, which is Keycloak: `make test-oidc` brings both up."""

import os
import time
from typing import Any

import pytest
import requests
from deltalake import DeltaTable
from trino.auth import Authentication, JWTAuthentication, OAuth2Authentication
from trino.dbapi import connect
from trino.exceptions import TrinoQueryError

from tests.stack.platform import Stack
from tests.stack.provider_login import (
    LoginRefusedError,
    challenge,
    log_in,
    parts,
    password_of,
    signed_by_another,
    status,
    token_for_client,
    token_of,
    unsigned,
)
from tests.stack.provider_realm import CLIENT_WITHOUT_AUDIENCE, OTHER_CLIENT, TOKEN_SECONDS
from tests.stack.secret_values import shown_in
from tests.stack.trino_users import ANALYST, CATALOG, ENGINEER, NewTable
from tests.support.eventually import eventually
from tools.stack import run, trino

pytestmark = pytest.mark.skipif(os.environ.get("OIDC") != "keycloak", reason="make test-oidc runs these")

PEOPLE = ("analyst", "analyst-archery-duel", "analyst-kart-rumble", "support", "engineer", "admin")
SERVICES = ("trino", "keycloak")
EVENTS = "SELECT game_name, gamer_id FROM silver.events ORDER BY 1"
# Trino's default for clocks that differ.
CLOCK_SKEW_SECONDS = 60


@pytest.fixture(scope="module")
def provider_stack() -> Stack:
    """The running Trino, its object store and the provider, with a table of two games."""
    stack = Stack()
    table = NewTable(stack.lakehouse, "silver/events")
    options = dict(stack.lakehouse.options)
    if not DeltaTable.is_deltatable(stack.lakehouse.child("silver/events"), options):
        table.append(game_name=["Archery Duel", "Kart Rumble"], gamer_id=["archer", "driver"])
    if not ENGINEER.sees(EVENTS)():
        table.register()
    return stack


@pytest.fixture(scope="module")
def early_token(provider_stack: Stack) -> tuple[str, float]:
    """A token and when it was issued."""
    assert provider_stack
    return token_of("analyst"), time.monotonic()


def rows(authentication: Authentication, sql: str, user: str | None = None) -> list[list[Any]]:
    """The rows of a result, for a client that authenticates in some way."""
    at = trino("analyst")
    connection = connect(  # type: ignore[no-untyped-call] # untyped
        host=at.host, port=at.port, http_scheme=at.scheme, user=user, catalog="delta", auth=authentication
    )
    cursor = connection.cursor()
    cursor.execute(sql)
    return list(cursor.fetchall())


def ask(sql: str, token: str, user: str | None = None) -> list[list[Any]]:
    """The rows of a result, for a client with a token."""
    return rows(JWTAuthentication(token), sql, user)


def test_a_token_that_has_not_expired_is_accepted(early_token: tuple[str, float]) -> None:
    assert status(early_token[0]) == 200


def test_a_client_without_a_password_queries_as_the_person_who_logs_in_at_the_provider() -> None:
    login = OAuth2Authentication(
        lambda address: log_in(address, "analyst", password_of("analyst"))  # type: ignore[arg-type] # it takes any callable
    )

    assert rows(login, "SELECT current_user", "analyst") == [["analyst"]]


@pytest.mark.parametrize("user", PEOPLE)
def test_the_user_is_the_one_that_the_provider_names(user: str) -> None:
    assert ask("SELECT current_user", token_of(user)) == [[user]]


def test_the_rows_and_masks_are_those_of_the_user(provider_stack: Stack) -> None:
    assert provider_stack
    engineer, (kart,) = ask(EVENTS, token_of("engineer")), ask(EVENTS, token_of("analyst-kart-rumble"))

    assert engineer == [["Archery Duel", "archer"], ["Kart Rumble", "driver"]]
    assert kart[0] == "Kart Rumble"
    assert kart[1] != "driver"


def test_a_person_whom_the_provider_knows_and_trino_does_not_is_refused() -> None:
    assert status(token_of("visitor")) == 401


def test_a_wrong_password_at_the_provider_is_refused() -> None:
    with pytest.raises(LoginRefusedError):
        log_in(challenge().redirect, "analyst", password_of("engineer"))


def test_a_login_gives_a_token_to_the_client_that_asked_for_it_only() -> None:
    asked, other = challenge(), challenge()

    log_in(asked.redirect, "analyst", password_of("analyst"))

    assert "token" in requests.get(asked.token, timeout=60).json()
    assert "token" not in requests.get(other.token, timeout=60).json()


def test_a_person_becomes_no_other_user() -> None:
    with pytest.raises(TrinoQueryError, match="User analyst cannot impersonate user engineer"):
        ask("SELECT 1", token_of("analyst"), user="engineer")


def test_a_token_with_another_signature_or_none_is_refused() -> None:
    token = token_of("analyst")
    header, claims = parts(token)

    assert status(token) == 200
    assert status(signed_by_another(header, claims)) == 401
    assert status(unsigned(claims)) == 401
    engineer = signed_by_another(header, {**claims, "trino_user": "engineer"})
    assert status(".".join([*engineer.split(".")[:2], token.split(".")[2]])) == 401


def test_a_token_that_the_provider_issued_for_another_client_is_refused() -> None:
    token = token_for_client(OTHER_CLIENT, "engineer")
    claims = parts(token)[1]

    assert (claims["trino_user"], claims["aud"]) == ("engineer", OTHER_CLIENT)
    assert status(token) == 401


def test_a_token_without_an_audience_names_no_user() -> None:
    """Trino 476 accepts tokens without an audience; the claim with the user is in those for Trino alone."""
    token = token_for_client(CLIENT_WITHOUT_AUDIENCE, "engineer")
    claims = parts(token)[1]

    assert (claims["preferred_username"], claims.get("aud"), claims.get("trino_user")) == ("engineer", None, None)
    assert status(token) == 401


def test_services_and_people_log_in_with_passwords_too(provider_stack: Stack) -> None:
    """Also while there is no provider."""
    assert [user.one("SELECT current_user") for user in (ANALYST, ENGINEER)] == ["analyst", "engineer"]
    provider_stack.pause("keycloak")
    try:
        assert ANALYST.one("SELECT current_user") == "analyst"
        assert CATALOG.refusal("SHOW SCHEMAS FROM delta") == ""
    finally:
        provider_stack.compose("unpause", "keycloak")


def test_no_secret_is_in_settings_variables_command_lines_or_logs(provider_stack: Stack) -> None:
    containers = provider_stack.compose("ps", "--all", "--quiet").split()
    inspected = run(("docker", "inspect", *containers))
    # The variables of all processes, but that of the secret by which Trino signs its requests to itself.
    variables = "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -v TRINO_SHARED_SECRET"
    environments = [provider_stack.compose("exec", "--no-TTY", name, "bash", "-c", variables) for name in SERVICES]

    assert "OIDC_ISSUER=https" in environments[0]
    for text in (inspected, *environments, provider_stack.compose("top"), provider_stack.compose("logs", "--no-color")):
        assert shown_in(text) == []


@pytest.mark.parametrize(
    ("service", "file"), [("trino", "config.properties"), ("keycloak", "keycloak/import/realm.json")]
)
def test_no_other_user_reads_the_files_with_the_clients_secret(provider_stack: Stack, service: str, file: str) -> None:
    path = f"/tmp/{file}"  # noqa: S108 # the container's

    assert provider_stack.compose("exec", "--no-TTY", service, "stat", "--format", "%a", path).strip() == "600"


def test_a_token_that_has_expired_is_refused(early_token: tuple[str, float]) -> None:
    token, issued = early_token

    eventually(lambda: status(token) == 401, timeout=TOKEN_SECONDS + CLOCK_SKEW_SECONDS + 30)
    assert time.monotonic() - issued > TOKEN_SECONDS
