"""Looks for texts in everything that a platform has written: files, objects, records; says where and never what."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from gamelake.privacy.scan_formats import UnreadableError, decompressed, sqlite_rows
from gamelake.privacy.search_terms import Hit, SearchTerms
from gamelake.storage.store import Store

_PART = 4 << 20
_UNPACKED_AT_ONCE = 512 << 20
_MOST_FOUND = 1_000


class ScanFinding(msgspec.Struct, frozen=True, order=True):
    """A text, by its number, that stands somewhere in some form."""

    needle: int
    form: str
    place: str


class Scan(msgspec.Struct, kw_only=True):
    """What was looked at, what was found (the first thousand), and what could not be looked at."""

    needles: int
    files: int = 0
    records: int = 0
    bytes: int = 0
    unpacked_bytes: int = 0
    findings: int = 0
    found: list[ScanFinding] = []
    unscanned: list[str] = []


class Scanner:
    """Looks through one thing after the other."""

    def __init__(self, needles: SearchTerms) -> None:
        self._needles = needles
        self._found: set[ScanFinding] = set()
        self.scan = Scan(needles=needles.count)

    def folder(self, path: Path) -> None:
        """All files of a folder, or one file; a file that is gone when its turn comes is no file any more."""
        if not path.exists():
            self.scan.unscanned.append(f"{path}: there is no such file or folder")
            return
        for file in _files(path, self.scan.unscanned):
            place = self._named(str(file))
            try:
                self._file(file, place)
            except FileNotFoundError:
                continue
            except (OSError, UnreadableError) as error:
                self.scan.unscanned.append(f"{place}: {error}")

    def store(self, store: Store) -> None:
        """All objects of a lakehouse."""
        for path in store.paths(""):
            place = self._named(f"{store.location.uri}/{path}")
            content = store.get(path)
            if content is not None:
                self.scan.files += 1
                self.parts([content], place)
                self._unpacked(content, place)

    def parts(self, parts: Iterable[bytes], place: str) -> None:
        """Bytes that come in parts."""
        self.note(self._needles.in_stream(self._counted(parts)), place)

    def note(self, hits: set[Hit], place: str) -> None:
        """Remember what was found somewhere."""
        new = {ScanFinding(hit.needle, hit.form.value, place) for hit in hits} - self._found
        self._found |= new
        self.scan.findings += len(new)
        self.scan.found += sorted(new)[: _MOST_FOUND - len(self.scan.found)]

    def hits(self, data: bytes) -> set[Hit]:
        """What stands in some bytes."""
        self.scan.bytes += len(data)
        return self._needles.in_bytes(data)

    def _named(self, path: str) -> str:
        """A path, unless something stands in it that must not be told; that it does is a finding."""
        hits = self._needles.in_bytes(path.encode())
        if not hits:
            return path
        place = f"{Path(path).anchor}... (a path of {len(path)} characters)"
        self.note(hits, f"the name of {place}")
        return place

    def _file(self, file: Path, place: str) -> None:
        self.scan.files += 1
        with file.open("rb") as opened:
            self.parts(iter(lambda: opened.read(_PART), b""), place)
        for rows in sqlite_rows(file):
            self._note_unpacked(rows, place)
        if file.stat().st_size <= _UNPACKED_AT_ONCE:
            self._unpacked(file.read_bytes(), place)
        else:
            self.scan.unscanned.append(f"{place}: too large to be unpacked")

    def _unpacked(self, content: bytes, place: str) -> None:
        try:
            for part in decompressed(content):
                self._note_unpacked(part, place)
        except UnreadableError as error:
            self.scan.unscanned.append(f"{place}: {error}")

    def _note_unpacked(self, part: bytes, place: str) -> None:
        self.scan.unpacked_bytes += len(part)
        self.note(self._needles.in_bytes(part), f"{place}, unpacked")

    def _counted(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.scan.bytes += len(part)
            yield part


def _files(path: Path, unscanned: list[str]) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path, onerror=lambda error: unscanned.append(f"{path}: {error}")):
        yield from (file for name in sorted(names) if (file := Path(folder) / name).is_file())
