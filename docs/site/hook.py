"""MkDocs' hook: gives it the repository's documents as pages, at their paths in the repository."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools import docs_site

REPOSITORY = Path(__file__).resolve().parents[2]
MERMAID = REPOSITORY / "build/docs/mermaid/mermaid.min.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the pages of folders in the nav."""
    config.nav = docs_site.expand(config.nav, docs_site.documents(REPOSITORY))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the documents, the files that they link to, and Mermaid."""
    names = docs_site.documents(REPOSITORY)
    for name in names:
        files.append(File.generated(config, name, abs_src_path=str(REPOSITORY / name)))
    for target in docs_site.linked_files(REPOSITORY, names):
        page = docs_site.page_of(REPOSITORY, target)
        if page == target:
            files.append(File.generated(config, target, abs_src_path=str(REPOSITORY / target)))
        else:
            files.append(File.generated(config, page, content=docs_site.show(REPOSITORY, target)))
    files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=str(MERMAID)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links to files lead to their pages."""
    return docs_site.link_to_pages(REPOSITORY, page.file.src_uri, markdown)
