"""The docs site has every document in its navigation, pages for what they link to, and nothing from other hosts."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.docs_site import documents, entries, expand, link_to_pages, linked_files, page_of, show

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGURATION = REPOSITORY / "mkdocs.yml"


class _WithoutPython(yaml.SafeLoader):
    """MkDocs' configuration names functions of Python by tags."""


_WithoutPython.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(CONFIGURATION.read_text(encoding="utf-8"), _WithoutPython)  # noqa: S506 # safe
    return read


def test_the_navigation_holds_every_document_once(configuration: dict[str, Any]) -> None:
    names = documents(REPOSITORY)

    assert sorted(entries(expand(configuration["nav"], names))) == names


def test_a_broken_link_or_anchor_fails_the_build(configuration: dict[str, Any]) -> None:
    assert configuration["strict"] is True
    assert set(configuration["validation"]["links"].values()) == {"warn"}
    # MkDocs counts no warning that it does not print.
    assert not re.search(r"mkdocs\) build.*--quiet", (REPOSITORY / "Makefile").read_text())


def test_the_site_takes_neither_fonts_nor_scripts_from_other_hosts(configuration: dict[str, Any]) -> None:
    theme = "".join(path.read_text() for path in (REPOSITORY / "docs/site/theme").glob("*.html"))

    assert configuration["theme"]["font"] is False
    assert not {"extra_javascript", "extra_css"} & configuration.keys()
    assert "assets/mermaid.min.js" in theme
    assert "://" not in theme


def test_a_folder_in_the_navigation_stands_for_its_documents_that_have_no_place() -> None:
    names = ["a/README.md", "a/1.md", "a/2.md", "a/b/3.md"]

    assert expand([{"A": ["a/README.md", "a/*"]}], names) == [{"A": ["a/README.md", "a/1.md", "a/2.md"]}]


def test_links_to_files_and_folders_lead_to_pages_that_show_them(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/one.yaml").write_text("a: 1\n")
    text = "[file](../etc/one.yaml#L1) [folder](../etc) [page](here.md) `[code](../etc)` [web](https://localhost)"
    (tmp_path / "docs/here.md").write_text(text)

    assert link_to_pages(tmp_path, "docs/here.md", text) == (
        "[file](../etc/one.yaml.md#L1) [folder](../etc/README.md) [page](here.md) `[code](../etc)` [web](https://localhost)"
    )
    assert linked_files(tmp_path, ["docs/here.md"]) == ["etc", "etc/one.yaml"]
    assert "\n`````yaml\na: 1\n`````\n" in show(tmp_path, "etc/one.yaml")
    assert "- `one.yaml`" in show(tmp_path, "etc")


def test_a_picture_and_a_notebook_are_in_the_site_as_they_are() -> None:
    assert page_of(REPOSITORY, "docs/gold.svg") == "docs/gold.svg"
    assert page_of(REPOSITORY, "notebooks/analyst.ipynb") == "notebooks/analyst.ipynb"
