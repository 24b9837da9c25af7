"""Portals that several files of tests ask."""

from dataclasses import replace
from pathlib import Path

import pytest

from services.portal.app import PortalApp
from services.portal.settings import PortalSettings
from tests.unit.portal.portals import app


@pytest.fixture
def settings(tmp_path: Path) -> PortalSettings:
    """The settings of `make dev`, more or less."""
    return PortalSettings.from_env(
        {
            "PORTAL_PROBES": "kafka=tcp://127.0.0.1:1",
            "PORTAL_LINKS": "Data Docs=https://127.0.0.1:8765,Trino=https://127.0.0.1:8080;analyst;trino-analyst",
            "PORTAL_REPORT": str(tmp_path / "report.html"),
            "GAMELAKE_LAKEHOUSE": f"file://{tmp_path}",
        }
    )


@pytest.fixture
def portal(settings: PortalSettings) -> PortalApp:
    """A portal whose questions are those of the repository."""
    return app(settings)


@pytest.fixture
def documented(settings: PortalSettings, tmp_path: Path) -> PortalApp:
    """A portal with a docs site of two pages, and a secret file outside of the site."""
    site = tmp_path / "site"
    (site / "guide").mkdir(parents=True)
    (site / "index.html").write_text("<p>Welcome</p><script>run()</script>")
    (site / "guide" / "index.html").write_text("<p>Guide</p>")
    (site / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret").write_text("secret")
    (site / "link").symlink_to(tmp_path / "secret")
    return app(replace(settings, docs=site))
