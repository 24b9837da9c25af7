"""The docs site, which `make docs` has built, under the portal's address."""

import mimetypes
from dataclasses import dataclass
from pathlib import Path

from services.portal.lineage import script_hashes

DOCS = "/documents/"


@dataclass(frozen=True, slots=True)
class DocsFile:
    """A file of the site; `policy` is its Content-Security-Policy."""

    content: bytes
    content_type: str
    policy: str


@dataclass(frozen=True, slots=True)
class DocsSite:
    """A folder with the site."""

    folder: Path

    def get(self, path: str) -> DocsFile | None:
        """The file at a path below `DOCS`; that of a folder is its index. None: there is none."""
        root = self.folder.resolve()
        try:
            file = (root / (f"{path}index.html" if path.endswith("/") or not path else path)).resolve()
            # What is outside of the folder, by dots or by a link, is not part of it.
            if not file.is_relative_to(root) or not file.is_file():
                return None
            content = file.read_bytes()
        except (OSError, ValueError):
            return None
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return DocsFile(content, f"{kind}; charset=utf-8" if kind.startswith("text/") else kind, _policy(kind, content))


def _policy(kind: str, content: bytes) -> str:
    # The theme's pages have scripts in them, and diagrams are drawn with styles of their own.
    hashes = script_hashes(content.decode("utf-8", "replace")) if kind == "text/html" else ()
    scripts = " ".join(("'self'", *hashes))
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )
