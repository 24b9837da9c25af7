"""The docs site, which `make docs` has built, under the portal's address; without it, the runbooks' text."""

import mimetypes
from dataclasses import dataclass
from pathlib import Path

from services.portal.lineage import script_hashes

DOCS = "/documents/"
RUNBOOKS = "monitoring/runbooks/"
ALERT_RUNBOOKS = f"{DOCS}{RUNBOOKS}"


@dataclass(frozen=True, slots=True)
class DocsFile:
    """A file of the site; `policy` is its Content-Security-Policy."""

    content: bytes
    content_type: str
    policy: str


@dataclass(frozen=True, slots=True)
class DocsSite:
    """The folder of the site, and that of the runbooks, which must open although the site was never built."""

    folder: Path | None
    runbooks: Path | None = None

    def get(self, path: str) -> DocsFile | None:
        """Return the file at a path below `DOCS`; that of a folder is its index. None: there is none."""
        file = self.folder and _inside(self.folder, f"{path}index.html" if path.endswith("/") or not path else path)
        if file:
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        elif self.runbooks and path.startswith(RUNBOOKS):
            file, kind = _inside(self.runbooks, path.removeprefix(RUNBOOKS).removesuffix("/") + ".md"), "text/plain"
        if not file:
            return None
        content = file.read_bytes()
        return DocsFile(content, f"{kind}; charset=utf-8" if kind.startswith("text/") else kind, _policy(kind, content))


def _inside(folder: Path, path: str) -> Path | None:
    """Return the file at a path in a folder; what is outside of it, by dots or by a link, is not part of it."""
    root = folder.resolve()
    try:
        file = (root / path).resolve()
        return file if file.is_relative_to(root) and file.is_file() else None
    except (OSError, ValueError):
        return None


def _policy(kind: str, content: bytes) -> str:
    # The theme's pages have scripts in them, and diagrams are drawn with styles of their own.
    hashes = script_hashes(content.decode("utf-8", "replace")) if kind == "text/html" else ()
    scripts = " ".join(("'self'", *hashes))
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )
