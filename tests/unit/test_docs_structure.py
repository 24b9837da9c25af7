"""The documents hold together: pages are in their index, links lead somewhere, jobs and tests that are named exist."""

import re
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
DECISIONS = DOCS / "decisions"
_PAGE_GLOBS = ("*.md", "appendix/*.md", "how-to/*.md", "reference/*.md", "roles/*.md")
PAGES = sorted(str(path.relative_to(REPOSITORY)) for each in _PAGE_GLOBS for path in DOCS.glob(each))
REFERENCE_PAGES = [page for page in PAGES if page.startswith("docs/reference/")]
DECISION_PAGES = sorted(str(path.relative_to(REPOSITORY)) for path in DECISIONS.glob("[0-9]*.md"))
GUIDES = ["docs/tutorial.md", *(page for page in PAGES if page.startswith("docs/how-to/"))]
NOT_OURS = frozenset({"build", ".venv", "node_modules"})

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_TEST_NAME = re.compile(r"`(test_\w+)`")
_TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
_PATH = re.compile(
    r"`((?:benchmarks|compose|contracts|deploy|docs|gamelake|jobs|monitoring|native|notebooks|quality|services|sql|tests|tools)"
    r"/[\w./-]*)`"
)
_MODULE = re.compile(r"`[^`\n]*-m ((?:benchmarks|gamelake|jobs|services|tools)(?:\.\w+)*)[^`\n]*`")
# Files that commands of the stack make and Git ignores.
_GENERATED = ("compose/secrets", "compose/certificates", "compose/.env.override")
_WALK = re.compile(r"^\| \d+ \| `([\w/]+\.py)` \|", re.MULTILINE)
_PACKAGE = re.compile(r"(?:^ *|--> |& )(\w+)")
_BOX_DRAWING = re.compile("[\u2500-\u257f]")
_DECISION = re.compile(r"^- \[(\d{4}): (.+)\]\((.+)\)$", re.MULTILINE)
_WORD = re.compile(r"[^\s|]*\w[^\s|]*")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_WAYS_BACK = ("What you built", "In the stack and on Kubernetes", "If it does not work", "Undo")
_MOST_WORDS, _LONGEST_WALK = 350, 15


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


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_has_its_box_a_check_in_each_step_and_the_way_back(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    sections = _SECTION.split(text)
    bodies = dict(zip(sections[1::2], sections[2::2], strict=True))
    steps = [title for title in bodies if title[0].isdigit()]

    assert re.findall(r"^> - \*\*(.+?)\*\*:", sections[0], re.MULTILINE) == ["Time", "You need", "You get"]
    assert [int(title.partition(".")[0]) for title in steps] == list(range(1, len(steps) + 1)) != []
    assert [title for title in steps if "**Check" not in bodies[title]] == []
    assert [title for title in _WAYS_BACK if title not in bodies] == []
    assert "| symptom | cause | fix |" in bodies["If it does not work"]


@pytest.mark.parametrize("document", [*PAGES, *DECISION_PAGES])
def test_every_path_that_a_document_names_exists(document: str) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    paths = [path for path in _PATH.findall(text) if not path.startswith(_GENERATED)]
    modules = [module.replace(".", "/") for module in _MODULE.findall(text)]

    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    assert [path for path in modules if not any((REPOSITORY / f"{path}{end}").exists() for end in (".py", "/"))] == []


def test_the_walk_of_one_event_passes_few_files_and_each_one_once() -> None:
    walk = _WALK.findall((DOCS / "architecture.md").read_text(encoding="utf-8"))

    assert 0 < len(walk) <= _LONGEST_WALK
    assert len(walk) == len(set(walk))


def test_the_picture_of_the_packages_shows_the_layers_that_lint_checks() -> None:
    linter = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in linter["contracts"] if contract.get("containers") == ["gamelake"])
    diagram = (
        (DOCS / "architecture.md").read_text().partition("```mermaid\nflowchart TB\n  programs[")[2].partition("```")[0]
    )
    arrows = [_PACKAGE.findall(line) for line in diagram.splitlines()[1:] if "-->" in line]
    level = {package: -row for row, layer in enumerate(layers) for package in layer.split(" | ")}

    assert {package for line in arrows for package in line} == level.keys() - {"__main__"}
    assert [(upper, lower) for upper, *others in arrows for lower in others if level[upper] <= level[lower]] == []


def test_the_index_of_decisions_names_every_page_by_its_title() -> None:
    index = _DECISION.findall((DECISIONS / "README.md").read_text(encoding="utf-8"))
    titles = [(REPOSITORY / page).read_text(encoding="utf-8").splitlines()[0] for page in DECISION_PAGES]

    assert [f"# {number}: {title}" for number, title, _ in index] == titles
    assert [name for _, _, name in index] == [Path(page).name for page in DECISION_PAGES]
    assert len({number for number, _, _ in index}) == len(DECISION_PAGES)


@pytest.mark.parametrize("page", DECISION_PAGES)
def test_a_decision_is_one_page_with_its_parts(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    parts = re.findall(r"^## (.+)$", text, re.MULTILINE)

    assert len(_WORD.findall(text)) <= _MOST_WORDS
    assert [part for part in parts if part != "Measured"] == ["Context", "Decision", "Given up"]
    assert "Measured" not in parts or parts[2] == "Measured"
    assert text.startswith(f"# {Path(page).name[:4]}: ")


@pytest.mark.parametrize("page", REFERENCE_PAGES)
def test_the_parts_of_a_reference_page_have_one_order(page: str) -> None:
    parts = re.findall(r"^## (.+)$", (REPOSITORY / page).read_text(encoding="utf-8"), re.MULTILINE)

    assert parts[:2] == ["Use", "Conventions"]
    assert parts[-2:] == ["Defined in", "See also"]


def test_every_job_is_in_the_list_of_jobs() -> None:
    page = (DOCS / "reference" / "jobs.md").read_text()
    jobs = {f"jobs/{path.name}" for path in (REPOSITORY / "jobs").glob("*.py") if path.name != "__init__.py"}

    assert set(re.findall(r"`(jobs/\w+\.py)`", page)) == jobs


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
    named = {name for page in DECISIONS.glob("[0-9]*.md") for name in _TEST_NAME.findall(page.read_text())}
    tests = {name for path in (REPOSITORY / "tests").rglob("test_*.py") for name in _TEST.findall(path.read_text())}

    assert named <= tests
