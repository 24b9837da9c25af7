"""The snippets of documents, for tests that run them as they stand in the page."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_KEY = re.compile(r"^(\w+:)\n((?:[ #].*\n|\n)+)", re.MULTILINE)
_MAKE_SQL = "make sql ENGINE=duckdb ON=dev "


@dataclass(frozen=True, slots=True)
class Snippet:
    """A code block of a document.

    Attributes:
        language: of the text.
        files: that a reader adds it to, as its title says.
    """

    language: str
    files: tuple[str, ...]
    text: str

    @property
    def is_query(self) -> bool:
        """True if it is one `make sql`, of the tables of `make dev`."""
        return self.text.startswith(_MAKE_SQL)

    @property
    def query(self) -> str:
        [query] = [word.removeprefix("Q=") for word in shlex.split(self.text) if word.startswith("Q=")]
        return query

    def add_to_files(self, repository: Path) -> None:
        """Add it to its files, as a reader does."""
        for name in self.files:
            file = repository / name
            old = file.read_text(encoding="utf-8") if file.exists() else ""
            file.write_text(self._added(old), encoding="utf-8")

    def _added(self, old: str) -> str:
        if self.language != "yaml":
            # Below the line that the file has already.
            first, rest = self.text.split("\n", 1)
            assert f"\n{first}\n" in old
            return old.replace(f"\n{first}\n", f"\n{first}\n{rest}", 1)
        for key, entries in _KEY.findall(self.text):
            # Last under the key, or with the key at the end of the file.
            block = re.search(rf"^{key}\n(?:[ ].*\n|\n(?= ))+", old, re.MULTILINE)
            end = block.end() if block else len(old)
            old = old[:end] + (entries if block else f"{key}\n{entries}") + old[end:]
        return old


def snippets(page: str) -> list[Snippet]:
    """The code blocks of a document, except diagrams, in their order."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    found = [
        Snippet(language, tuple(title.split(" and ")) if title else (), body)
        for language, title, body in _BLOCK.findall(text)
    ]
    return [each for each in found if each.language != "mermaid"]
