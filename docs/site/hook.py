"""MkDocs' hook: gives it the repository's documents as pages, at their paths in the repository."""

import tomllib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools import docs_site

REPOSITORY = Path(__file__).resolve().parents[2]
MERMAID = REPOSITORY / "build/docs/mermaid/mermaid.min.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the pages of folders in the nav, and the version that the site describes."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.extra |= {
        "release": project["version"],
        "commit": docs_site.git_says(REPOSITORY, "rev-parse", "HEAD"),
        "remote": docs_site.git_says(REPOSITORY, "remote", "get-url", "origin"),
    }
    config.nav = docs_site.expand(config.nav, docs_site.documents(REPOSITORY))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the documents, also as text, the files that they link to, and Mermaid."""
    names = docs_site.documents(REPOSITORY)
    for name in names:
        for path in (name, docs_site.text_of(name)):
            files.append(File.generated(config, path, abs_src_path=str(REPOSITORY / name)))
    for target in docs_site.linked_files(REPOSITORY, names):
        page = docs_site.page_of(REPOSITORY, target)
        if page == target:
            files.append(File.generated(config, target, abs_src_path=str(REPOSITORY / target)))
        else:
            files.append(File.generated(config, page, content=docs_site.show(REPOSITORY, target)))
    files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=str(MERMAID)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links to files lead to their pages, and the search prefer pages for users."""
    if not page.meta.get("search"):
        page.meta["search"] = {"boost": docs_site.search_weight(page.file.src_uri)}
    return docs_site.link_to_pages(REPOSITORY, page.file.src_uri, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Let the keyboard scroll each table that is wider than the screen, and the search skip the source of diagrams."""
    return docs_site.exclude_diagrams_from_search(docs_site.make_tables_scroll(html))


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, **_: object) -> dict[str, Any]:
    """Name the page's source: at the forge if there is one, or else as text on the site."""
    name = page.file.src_uri
    # Only documents have a path; the pages of other files are generated.
    if page.file.abs_src_path:
        address = docs_site.source_address(config.extra["remote"], config.extra["commit"], name)
        context["source"] = {"name": name, "address": address, "text": docs_site.text_of(name)}
    return context
