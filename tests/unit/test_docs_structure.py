"""The documents hold together: pages are in their index, links lead somewhere, jobs and tests that are named exist."""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
DECISIONS = DOCS / "decisions"
PAGES = sorted(str(path.relative_to(REPOSITORY)) for each in ("*.md", "how-to/*.md") for path in DOCS.glob(each))
NOT_OURS = frozenset({"build", ".venv", "node_modules"})

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_TEST_NAME = re.compile(r"`(test_\w+)`")
_TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
_FILE = re.compile(
    r"`((?:contracts|gamelake|jobs|quality|services|sql|tests|tools)/[\w/-]+\.(?:py|yaml|proto|md|sql))`"
)
_WALK = re.compile(r"^\| \d+ \| `([\w/]+\.py)` \|", re.MULTILINE)
_BOX_DRAWING = re.compile("[\u2500-\u257f]")
_LONGEST_DECISION, _LONGEST_WALK = 60, 15


def _documents() -> list[Path]:
    found = (path.relative_to(REPOSITORY) for path in REPOSITORY.rglob("*.md"))
    return sorted(path for path in found if not any(part in NOT_OURS or part.startswith(".") for part in path.parts))


def _prose(path: Path) -> str:
    """A document without its code."""
    return _CODE.sub("", _FENCE.sub("", path.read_text(encoding="utf-8")))


def _anchors(path: Path) -> set[str]:
    """The headings of a document as GitHub links to them."""
    headings = _HEADING.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _broken_links(path: Path) -> Iterator[str]:
    for link in _LINK.findall(_prose(path)):
        if _EXTERNAL.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            yield link


@pytest.mark.parametrize("document", _documents(), ids=str)
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    assert list(_broken_links(REPOSITORY / document)) == []


@pytest.mark.parametrize("document", ["README.md", *PAGES])
def test_a_document_begins_with_its_purpose_and_draws_in_mermaid(document: str) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    title, blank, first, *_ = text.splitlines()

    assert title.startswith("# ")
    assert blank == ""
    assert first[:1].isalnum()
    assert not _BOX_DRAWING.search(text)


@pytest.mark.parametrize("document", PAGES)
def test_every_file_that_a_document_names_exists(document: str) -> None:
    named = _FILE.findall((REPOSITORY / document).read_text(encoding="utf-8"))

    assert [name for name in named if not (REPOSITORY / name).exists()] == []


def test_the_walk_of_one_event_passes_few_files_and_each_one_once() -> None:
    walk = _WALK.findall((DOCS / "architecture.md").read_text(encoding="utf-8"))

    assert 0 < len(walk) <= _LONGEST_WALK
    assert len(walk) == len(set(walk))


def test_the_index_of_decisions_names_every_page_by_its_title() -> None:
    index = re.findall(r"^\| (\d{4}) \| \[(.+)\]\((.+)\) \|$", (DECISIONS / "README.md").read_text(), re.MULTILINE)
    pages = [path for path in sorted(DECISIONS.glob("*.md")) if path.name != "README.md"]
    titles = [path.read_text().splitlines()[0] for path in pages]

    assert [f"# {number}: {title}" for number, title, _ in index] == titles
    assert [name for _, _, name in index] == [path.name for path in pages]
    assert len({number for number, _, _ in index}) == len(pages)


@pytest.mark.parametrize("page", sorted(path.name for path in DECISIONS.glob("0*.md")))
def test_a_decision_is_one_page_with_its_four_parts(page: str) -> None:
    text = (DECISIONS / page).read_text()

    assert len(text.splitlines()) <= _LONGEST_DECISION
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Measured", "Given up"]
    assert text.startswith(f"# {page[:4]}: ")


def test_every_job_is_in_the_operations_manual() -> None:
    manual = (DOCS / "operations.md").read_text()
    jobs = {f"jobs/{path.name}" for path in (REPOSITORY / "jobs").glob("*.py") if path.name != "__init__.py"}

    assert set(re.findall(r"`(jobs/\w+\.py)`", manual)) == jobs


@pytest.mark.parametrize("document", ["delivery-guarantees.md", "security.md"])
def test_every_test_that_a_promise_rests_on_exists(document: str) -> None:
    named = set(_TEST_NAME.findall((DOCS / document).read_text()))
    tests = {name for path in (REPOSITORY / "tests").rglob("test_*.py") for name in _TEST.findall(path.read_text())}

    assert named
    assert named <= tests


def test_every_fault_is_proved_by_tests_that_exist() -> None:
    lines = (DOCS / "faults.md").read_text().splitlines()
    heads = [number for number, line in enumerate(lines) if line.startswith("| fault | promise |")]
    rows = [row for head in heads for row in takewhile(lambda line: line.startswith("|"), lines[head + 2 :])]
    proofs = [set(_TEST_NAME.findall(row)) for row in rows]
    tests = {name for path in (REPOSITORY / "tests").rglob("test_*.py") for name in _TEST.findall(path.read_text())}

    assert len(heads) == 3
    assert all(proofs)
    assert set().union(*proofs) <= tests


def test_tests_named_in_decisions_exist() -> None:
    named = {name for page in DECISIONS.glob("0*.md") for name in _TEST_NAME.findall(page.read_text())}
    tests = {name for path in (REPOSITORY / "tests").rglob("test_*.py") for name in _TEST.findall(path.read_text())}

    assert named <= tests
