"""The site navigates to every document but appendices, shows linked files, and loads nothing from other hosts."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.docs_site import (
    documents,
    entries,
    expand,
    link_to_pages,
    linked_files,
    make_tables_scroll,
    page_of,
    search_weight,
    show,
    source_address,
)

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGURATION = REPOSITORY / "mkdocs.yml"
APPENDIX = "docs/appendix/"


class _WithoutPython(yaml.SafeLoader):
    """MkDocs' configuration names functions of Python by tags."""


_WithoutPython.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(CONFIGURATION.read_text(encoding="utf-8"), _WithoutPython)  # noqa: S506 # safe
    return read


def test_the_navigation_holds_every_document_once_except_appendices(configuration: dict[str, Any]) -> None:
    names = documents(REPOSITORY)
    appendices = [name for name in names if name.startswith(APPENDIX)]

    assert configuration["not_in_nav"].split() == [f"/{APPENDIX}"]
    assert sorted([*entries(expand(configuration["nav"], names)), *appendices]) == names


def test_an_appendix_is_linked_from_the_page_of_its_name() -> None:
    appendices = [Path(name).name for name in documents(REPOSITORY) if name.startswith(APPENDIX)]

    assert [name for name in appendices if f"(appendix/{name}" not in (REPOSITORY / "docs" / name).read_text()] == []


def test_a_broken_link_or_anchor_fails_the_build(configuration: dict[str, Any]) -> None:
    assert configuration["strict"] is True
    assert set(configuration["validation"]["links"].values()) == {"warn"}
    # MkDocs counts no warning that it does not print.
    assert not re.search(r"mkdocs\) build.*--quiet", (REPOSITORY / "Makefile").read_text())


def test_the_site_takes_neither_fonts_nor_scripts_from_other_hosts(configuration: dict[str, Any]) -> None:
    parts = (path for path in (REPOSITORY / "docs/site/theme").rglob("*") if path.is_file())
    theme = "".join(path.read_text() for path in parts)

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


def test_the_search_ranks_decisions_below_all_other_documents() -> None:
    weights = {name: search_weight(name) for name in documents(REPOSITORY)}
    decisions = {name for name in weights if name.startswith("docs/decisions/")}
    for_users = {name for name in weights if name.startswith(("docs/how-to/", "docs/reference/", "README.md"))}

    assert max(weights[name] for name in decisions) < min(weights[name] for name in weights.keys() - decisions)
    assert {weights[name] for name in for_users} == {1}


@pytest.mark.parametrize(
    "remote",
    [
        "https://forge.example/owner/gamelake.git",
        "https://token@forge.example/owner/gamelake",
        "git@forge.example:owner/gamelake.git",
        "ssh://git@forge.example/owner/gamelake.git",
    ],
)
def test_the_source_of_a_page_is_at_the_forge(remote: str) -> None:
    page = "https://forge.example/owner/gamelake/blob/abc/docs/local.md"

    assert source_address(remote, "abc", "docs/local.md") == page


@pytest.mark.parametrize(
    ("remote", "commit"), [("", "abc"), ("/srv/gamelake.git", "abc"), ("https://a.example/b/c", "")]
)
def test_a_repository_without_a_forge_has_no_address(remote: str, commit: str) -> None:
    assert source_address(remote, commit, "docs/local.md") is None


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("<th>metric</th><th style='text-align: right'><code>a</code> &amp; b</th>", "Table: metric, a &amp; b"),
        ('<th>"late"</th>', "Table: &quot;late&quot;"),
        ("<th></th><th></th>", "Table"),
    ],
)
def test_a_table_scrolls_in_a_region_that_its_header_names(header: str, name: str) -> None:
    table = f"<table>\n<thead><tr>{header}</tr></thead></table>"

    page = make_tables_scroll(f"<p>before</p>{table}<p>between</p>{table}")

    region = f'<div class="gamelake-table" role="region" aria-label="{name}" tabindex="0">{table}</div>'
    assert page == f"<p>before</p>{region}<p>between</p>{region}"


def test_a_table_in_code_is_left_as_it_is() -> None:
    assert make_tables_scroll("<code>&lt;table&gt;</code>") == "<code>&lt;table&gt;</code>"
