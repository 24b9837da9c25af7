"""The parts of the docs site: documents at their paths in the repository, and pages for files that they link to.

MkDocs calls it by `docs/site/hook.py`, in an environment of its own. It imports only Python.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath

_NOT_PAGES = frozenset({"build", "node_modules"})
_AS_IT_IS = frozenset({".md", ".svg", ".png", ".ipynb"})
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".sql": "sql", ".proto": "protobuf", ".toml": "toml"}
_CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
_EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:")
# How much a match counts in the search: documents for users first, reasons and history last. 1 for all others.
_WEIGHTS = {
    "docs/decisions/": 0.001,
    "docs/appendix/": 0.01,
    "docs/upstream/": 0.01,
    # Pages that only lead to others.
    "docs/roles/": 0.1,
    "docs/compared.md": 0.1,
    "docs/model/": 0.1,
    "docs/architecture.md": 0.5,
    "tests/": 0.01,
    "AGENTS.md": 0.01,
    "CHANGELOG.md": 0.01,
    "CONTRIBUTING.md": 0.1,
    "monitoring/runbooks/": 0.1,
}
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_HEADER = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_HOSTED = re.compile(r"(?:https://(?:[^@/]*@)?|(?:ssh://)?git@)([^:/]+)[:/](.+?)(?:\.git)?/?")
_NOT_IN_SEARCH = "---\nsearch:\n  exclude: true\n---\n"

Nav = str | list["Nav"] | dict[str, "Nav"]


def documents(repository: Path) -> list[str]:
    """Return all documents of the repository, as paths in it; none in folders that are hidden or built."""
    found = (path.relative_to(repository) for path in repository.rglob("*.md"))
    return sorted(
        path.as_posix() for path in found if not any(part in _NOT_PAGES or part.startswith(".") for part in path.parts)
    )


def expand(nav: Nav, names: list[str]) -> Nav:
    """Return the nav with each `folder/*` replaced by the folder's documents that the nav does not name itself."""
    if isinstance(nav, dict):
        return {title: expand(entry, names) for title, entry in nav.items()}
    if isinstance(nav, str):
        return nav
    own = set(entries(nav))
    expanded: list[Nav] = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/*"):
            folder = entry.removesuffix("*")
            inside = (name for name in names if name.startswith(folder) and "/" not in name.removeprefix(folder))
            expanded += [name for name in inside if name not in own]
        else:
            expanded.append(expand(entry, names))
    return expanded


def entries(nav: Nav) -> Iterator[str]:
    """Yield the paths that a nav names."""
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from entries(entry)


def page_of(repository: Path, target: str) -> str:
    """Return the page that shows a file or folder of the repository.

    The path itself of a file that the site has unchanged.
    """
    path = repository / target
    if path.is_dir():
        return f"{target}/README.md"
    return target if path.suffix in _AS_IT_IS else f"{target}.md"


def _targets(repository: Path, document: str, text: str) -> Iterator[str]:
    folder = document.rpartition("/")[0]
    for part in _CODE.split(text)[::2]:
        for name, _ in _LINK.findall(part):
            target = normpath(f"{folder}/{name}" if folder else name)
            if not _EXTERNAL.match(name) and (repository / target).exists():
                yield target


def linked_files(repository: Path, names: list[str]) -> list[str]:
    """Return files and folders, not documents, that documents link to, as paths in the repository."""
    targets = {
        target
        for name in names
        for target in _targets(repository, name, (repository / name).read_text(encoding="utf-8"))
    }
    return sorted(target for target in targets if page_of(repository, target) not in names)


def show(repository: Path, target: str) -> str:
    """Render the page of a file, with its text, or of a folder, with the names of its files."""
    path = repository / target
    if path.is_dir():
        inside = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
        listed = "\n".join(f"- `{name}`" for name in inside if "__pycache__" not in name)
        return f"{_NOT_IN_SEARCH}# {target}\n\n{listed}\n"
    text = path.read_text(encoding="utf-8").rstrip()
    return f"{_NOT_IN_SEARCH}# {target}\n\n`````{_LANGUAGES.get(path.suffix, 'text')}\n{text}\n`````\n"


def make_tables_scroll(html: str) -> str:
    """Return the page with each table in a region that the keyboard can scroll, named by the table's header."""

    def region(table: re.Match[str]) -> str:
        columns = filter(None, (_TAG.sub("", cell).strip() for cell in _HEADER.findall(table[0])))
        name = ", ".join(columns).replace('"', "&quot;")
        label = f"Table: {name}" if name else "Table"
        return f'<div class="gamelake-table" role="region" aria-label="{label}" tabindex="0">{table[0]}</div>'

    return _TABLE.sub(region, html)


def exclude_diagrams_from_search(html: str) -> str:
    """Return the page with each diagram marked so that the search does not index its source."""
    return html.replace('<pre class="mermaid">', '<pre class="mermaid" data-search-exclude>')


def search_weight(document: str) -> float:
    """Return how much a match in a document counts in the search; 1 for most."""
    return next((weight for path, weight in _WEIGHTS.items() if document.startswith(path)), 1)


def text_of(document: str) -> str:
    """Return where the site has a document's Markdown as plain text."""
    return f"{document}.txt"


def source_address(remote: str, commit: str, target: str) -> str | None:
    """Return the forge's page of a file at a commit; None if the remote is not on a forge.

    Args:
        remote: the address that Git fetches from, as `git remote get-url` prints it; empty: none.
        commit: its full hash.
        target: the file's path in the repository.
    """
    hosted = _HOSTED.fullmatch(remote)
    return f"https://{hosted[1]}/{hosted[2]}/blob/{commit}/{target}" if hosted and commit else None


def git_says(repository: Path, *arguments: str) -> str:
    """Return what Git prints; empty without Git or outside a checkout."""
    try:
        command = ("git", "-C", str(repository), *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def link_to_pages(repository: Path, document: str, text: str) -> str:
    """Return the text of a document, whose links to files and folders lead to their pages."""
    folder = document.rpartition("/")[0]

    def page(link: re.Match[str]) -> str:
        name, anchor = link[1], link[2] or ""
        target = normpath(f"{folder}/{name}" if folder else name)
        if _EXTERNAL.match(name) or not (repository / target).exists():
            return link[0]
        return f"{name.rstrip('/')}{page_of(repository, target).removeprefix(target)}{anchor}"

    parts = _CODE.split(text)
    parts[::2] = [_LINK.sub(page, part) for part in parts[::2]]
    return "".join(parts)
