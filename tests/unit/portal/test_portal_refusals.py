"""The portal refuses requests that no page of its own makes, by other names, without a session, or out of a folder."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

import pytest

from services.portal.app import PortalApp
from services.portal.settings import PortalSettings
from tests.unit.portal.portals import OWN, Elements, app, get


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nothing", OWN, 404),
        ("GET", "/questions/../../etc/passwd", OWN, 404),
        ("POST", "/questions/dead_letters_by_reason", OWN, 404),
        ("POST", "/", OWN, 405),
        ("DELETE", "/questions/retention", OWN, 405),
        ("GET", "/", {"host": "rebound.example.com"}, 421),
        ("GET", "/", {}, 421),
        ("POST", "/questions/retention", {**OWN, "sec-fetch-site": "cross-site"}, 403),
        ("POST", "/questions/retention", {**OWN, "origin": "https://example.com"}, 403),
        ("POST", "/questions/retention", {**OWN, "origin": "null"}, 403),
    ],
)
def test_requests_that_no_page_of_the_portal_makes_are_refused(
    portal: PortalApp, method: str, path: str, headers: Mapping[str, str], status: int
) -> None:
    response = portal.respond(method, path, headers)

    assert response.status == status
    Elements(response.body)


def test_metrics_are_for_those_who_address_the_portal_by_its_name_only(portal: PortalApp) -> None:
    assert get(portal, "/metrics", {"host": "evil.example"}).status is HTTPStatus.MISDIRECTED_REQUEST


def test_a_health_check_needs_no_name(portal: PortalApp) -> None:
    assert get(portal, "/healthz", {}).status == 200


@pytest.mark.parametrize(
    "path", ["../secret", "guide/../../secret", "link", "guide", "none/", "/etc/passwd", "a\0b", "%2e%2e/secret"]
)
def test_no_path_leads_out_of_the_docs_site(documented: PortalApp, path: str) -> None:
    assert get(documented, f"/documents/{path}").status == 404


def test_without_a_docs_site_its_pages_are_not_found_and_not_linked(portal: PortalApp) -> None:
    assert get(portal, "/documents/").status == 404
    assert "/documents/" not in get(portal, "/").body


@pytest.mark.parametrize("path", ["/", "/questions", "/metrics", "/enter?token=wrong", "/entries"])
def test_a_browser_without_a_session_gets_the_command_that_makes_an_address(portal: PortalApp, path: str) -> None:
    path, _, query = path.partition("?")

    response = portal.respond("GET", path, OWN, client=None, query=query)

    assert response.status is HTTPStatus.FORBIDDEN
    assert 'data-copy="gamelake portal"' in response.body
    assert Elements(response.body).all("nav") == []


def test_in_kubernetes_it_gets_the_document_instead(settings: PortalSettings) -> None:
    response = app(replace(settings, namespace="games")).respond("GET", "/", OWN, client=None)

    assert response.status is HTTPStatus.FORBIDDEN
    assert "docs/cluster.md" in response.body
    assert "data-copy" not in response.body
